import type { ComposeService } from "../../platform/compose/model.ts";

/**
 * Images of servers that keep data in a directory of their own, by kind. Two servers on the same directory destroy
 * the data, or the second does not start. A name is the end of the image's name, without its tag; with its owner if
 * the name alone would be ambiguous.
 */
const images = {
  database: `
    postgres postgresql postgresql-repmgr postgis pgvector pgvecto-rs vchord-postgres pgautoupgrade spilo-[0-9]+
    timescaledb timescaledb-[a-z0-9-]+ citusdata/citus paradedb
    mysql mysql-server mysql/community-server mariadb mariadb-galera
    percona percona-server percona-server-mongodb percona-xtradb-cluster
    mssql/server azure-sql-edge oracle-free oracle-xe database/free database/express database/enterprise db2_community/db2 firebird
    cockroach yugabyte tikv pingcap/pd crate/crate rqlite
    mongo mongodb mongodb-community-server mongodb-enterprise-server mongodb-atlas-local
    couchdb couchbase couchbase/server surrealdb ravendb rethinkdb arangodb orientdb eventstore kurrentdb
    cassandra dse-server scylla clickhouse clickhouse-server clickhouse-keeper
    neo4j memgraph memgraph-mage dgraph
    qdrant weaviate milvus chromadb/chroma
    redis redis-cluster redis-stack redis-stack-server valkey valkey-bundle valkey-cluster
    keydb dragonflydb/dragonfly kvrocks memcached
    influxdb influxdb3-core influxdb3-enterprise questdb tdengine prometheus victoria-metrics victoria-logs
    etcd zookeeper cp-zookeeper consul vault openbao`,
  "search index": `
    elasticsearch opensearch solr meilisearch typesense manticoresearch/manticore vespaengine/vespa`,
  queue: `
    rabbitmq nats nats-streaming nsq pulsar pulsar-all activemq-classic activemq-artemis emqx
    kafka kafka-native cp-kafka cp-server confluent-local redpanda`,
  store: `
    minio rustfs dxflrs/garage chrislusf/seaweedfs nexus3 grafana/loki grafana/tempo grafana/mimir`,
  server: `
    gitea forgejo gogs gitlab-ce gitlab-ee jenkins/jenkins`,
};

/** The directories in which such servers keep their data, whatever their image is called. */
const directories = `
  /var/lib/postgresql /home/postgres/pgdata /var/lib/mysql /var/opt/mssql /opt/oracle/oradata /var/lib/firebird
  /cockroach/cockroach-data /data/db /var/lib/mongodb /opt/couchdb/data /opt/couchbase/var
  /var/lib/cassandra /var/lib/scylla /var/lib/clickhouse /var/lib/neo4j /var/lib/arangodb3 /var/lib/memgraph
  /qdrant/storage /var/lib/weaviate /var/lib/milvus /var/lib/eventstore /var/lib/kurrentdb /var/lib/ravendb
  /var/lib/redis /var/lib/influxdb /var/lib/influxdb2 /var/lib/influxdb3 /var/lib/questdb /prometheus
  /victoria-metrics-data /var/lib/etcd /var/lib/zookeeper /consul/data /vault/data /vault/file
  /usr/share/elasticsearch/data /usr/share/opensearch/data /var/solr /meili_data
  /var/lib/rabbitmq /var/lib/kafka /var/lib/redpanda /bitnami
  /nexus-data /var/lib/gitea /var/opt/gitlab /var/jenkins_home`;

const imagePatterns = Object.entries(images).map(([kind, names]) => ({
  kind,
  pattern: new RegExp(`(?:^|/)(?:${alternatives(names)})(?::|@|$)`),
}));
const directoryPattern = new RegExp(`^(?:${alternatives(directories)})(?:/|$)`);

/** The image or the volume that marks `service` as a database or the like, or null. */
export function keepsData({ image, volumes }: ComposeService): string | null {
  const known = image && imagePatterns.find(({ pattern }) => pattern.test(image));
  if (known) return `${known.kind} ${image}`;
  const volume = volumes?.find(({ target }) => directoryPattern.test(target));
  return volume ? `data directory ${volume.target}` : null;
}

function alternatives(words: string): string {
  return words.trim().split(/\s+/).join("|");
}
