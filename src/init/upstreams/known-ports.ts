type Row = readonly [ports: readonly number[], protocol: string];

/** Ports whose usual protocol is not HTTP. */
const otherPorts: readonly Row[] = [
  [[20, 21, 990], "FTP"],
  [[22, 2222, 2022], "SSH"],
  [[23], "Telnet"],
  [[25, 465, 587, 1025, 2525], "SMTP"],
  [[53, 853, 5353], "DNS"],
  [[110, 995], "POP3"],
  [[143, 993], "IMAP"],
  [[389, 636], "LDAP"],
  [[139, 445, 111, 2049, 873], "file sharing"],
  [[1194, 51820], "a VPN"],
  [[1433], "SQL Server"],
  [[1521], "Oracle"],
  [[1883, 8883], "MQTT"],
  [[554, 1935, 8554], "a video stream"],
  [[2181, 2888, 3888], "ZooKeeper"],
  [[2375, 2376], "Docker"],
  [[3306, 33060], "MySQL"],
  [[3389, 5900, 5901], "a remote desktop"],
  [[3478, 5349], "TURN"],
  [[4222, 6222], "NATS"],
  [[4317, 50051, 50052], "gRPC, which the site of Caddy does not pass on"],
  [[5044], "logs of Beats"],
  [[5060, 5061], "SIP"],
  [[5222, 5269], "XMPP"],
  [[5432, 5433, 6432, 6543], "PostgreSQL"],
  [[5671, 5672, 61613, 61616], "a message broker"],
  [[6379, 6380, 16379, 26379], "Redis"],
  [[6667, 6697], "IRC"],
  [[9042, 9160], "Cassandra"],
  [[9092, 9094, 19092, 29092], "Kafka"],
  [[9229, 9230], "a debugger"],
  [[11211], "memcached"],
  [[24224], "Fluentd"],
  [[19132, 25565, 25575], "Minecraft"],
  [[7777, 2456, 8211, 16261, 27015, 27016, 30120, 34197], "a game"],
  [[9987, 10011, 30033, 41144, 64738], "a voice server"],
  [[27017, 27018, 27019], "MongoDB"],
  [[6881, 22000, 51413], "a peer-to-peer protocol"],
];

/** Ports at which a program has a certificate of its own. */
const tlsPorts = [443, 4443, 8443, 8448, 8920, 9443];

/** Ports of web servers, frameworks and their development servers, the likeliest page first. */
const httpPorts = [
  80, 8080, 8000, 3000, 5000, 4000, 8888, 4321, 5173, 4173, 4200, 1313, 1337, 1880, 2368, 3001, 3002, 3003,
  3010, 3333, 4567, 5001, 5002, 5050, 5174, 5601, 6006, 7860, 8001, 8002, 8003, 8008, 8010, 8055, 8069, 8081,
  8082, 8083, 8084, 8085, 8086, 8088, 8090, 8096, 8123, 8181, 8282, 8501, 8787, 8880, 9000, 9001, 9080, 9090,
  9091, 81,
];

/** The protocol that usually has the port of a container, if that is not HTTP; else null. */
export function otherProtocol(port: number): string | null {
  return otherPorts.find(([ports]) => ports.includes(port))?.[1] ?? null;
}

export function isTlsPort(port: number): boolean {
  return tlsPorts.includes(port);
}

export function isHttpPort(port: number): boolean {
  return httpPorts.includes(port);
}

/** Lower is likelier to be the page that people visit. */
export function portRank(port: number): number {
  const place = httpPorts.indexOf(port);
  return place < 0 ? httpPorts.length : place;
}
