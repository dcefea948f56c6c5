import assert from "node:assert/strict";
import { test } from "node:test";
import { replacementOf } from "../../../src/rollout/compose/replacement.ts";

const servers = [
  "database timescale/timescaledb-ha:pg17",
  "database timescale/timescaledb:latest-pg17",
  "database pgautoupgrade/pgautoupgrade:17-alpine",
  "database mysql/mysql-server:8.0",
  "database mcr.microsoft.com/mssql/server:2022-latest",
  "database gvenzl/oracle-free:23-slim",
  "database gvenzl/oracle-xe",
  "database container-registry.oracle.com/database/free:latest",
  "database cockroachdb/cockroach:v25.1.0",
  "database mongodb/mongodb-community-server:8.0-ubi9",
  "database couchbase",
  "database couchbase/server:7.6.4",
  "database surrealdb/surrealdb:v2",
  "database scylladb/scylla@sha256:0",
  "database neo4j:5",
  "database qdrant/qdrant",
  "database redis/redis-stack:latest",
  "database redis/redis-stack-server",
  "database questdb/questdb:8.2.1",
  "database prom/prometheus:v3",
  "database quay.io/coreos/etcd:v3.5.18",
  "database hashicorp/consul:1.20",
  "database localhost:5000/hashicorp/vault",
  "database confluentinc/cp-zookeeper:7.8.0",
  "search index solr:9",
  "queue confluentinc/cp-kafka:7.8.0",
  "queue redpandadata/redpanda",
  "store sonatype/nexus3",
  "server gitea/gitea:1.23",
  "server codeberg.org/forgejo/forgejo:10",
  "server gitlab/gitlab-ce",
];

for (const server of servers) {
  test(`two cannot run: ${server}`, () => {
    const image = server.slice(server.lastIndexOf(" ") + 1);
    assert.deepEqual(replacementOf({ image }, false), { how: "recreate", reason: server });
  });
}

const directories = [
  "/home/postgres/pgdata",
  "/home/postgres/pgdata/data",
  "/var/opt/mssql",
  "/opt/oracle/oradata",
  "/qdrant/storage",
  "/prometheus",
  "/var/lib/neo4j",
  "/var/lib/scylla",
  "/opt/couchbase/var",
  "/var/lib/kafka/data",
  "/usr/share/elasticsearch/data",
  "/var/lib/influxdb2",
];

for (const target of directories) {
  test(`two cannot run over ${target}`, () => {
    const service = { image: "acme/server", volumes: [{ type: "volume", target }] };
    const reason = `data directory ${target}`;
    assert.deepEqual(replacementOf(service, false), { how: "recreate", reason });
  });
}

const apps = [
  "acme/server",
  "acme/free",
  "acme/garage:2",
  "prom/node-exporter",
  "oliver006/redis_exporter",
  "acme/prometheus-adapter",
  "mongo-express",
  "redis/redisinsight",
  "acme/neo4j-browser",
  "ghcr.io/mssql/shop",
];

for (const image of apps) {
  test(`two can run: ${image}`, () => {
    assert.deepEqual(replacementOf({ image }, false), { how: "roll" });
  });
}

test("a directory whose name only begins like a data directory's is no data directory", () => {
  for (const target of ["/prometheus-rules", "/var/lib/mysql-files", "/app/var/lib/mysql"]) {
    const service = { image: "acme/app", volumes: [{ type: "volume", target }] };
    assert.deepEqual(replacementOf(service, false), { how: "roll" }, target);
  }
});
