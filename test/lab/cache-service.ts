/** Answers with its version and the content of its volumes. A sick one never gets healthy and spoils the data for the others. */
export const cacheServer = `
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
const { VERSION, GREETING, SICK, SPOILS, RUDE } = process.env;
if (existsSync("/anonymous/spoilt")) throw new Error("these data are of a newer version");
if (SPOILS) writeFileSync("/anonymous/spoilt", "");
const read = (path) => (existsSync(path) ? readFileSync(path, "utf8").trim() : "");
createServer(({ url }, response) => {
  const isRude = RUDE && url === "/front";
  response.statusCode = isRude || SICK || VERSION === "sick" ? 500 : 200;
  response.end([VERSION, GREETING, read("/anonymous/note"), read("/named/note")].join(" "));
}).listen(8080);
process.on("SIGTERM", () => process.exit(0));
`;
const ask = 'exec 3<>/dev/tcp/127.0.0.1/8080 && printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3';

/** The command of its health check, in the bash of its image. */
export const cacheCheck = `${ask} && read -r _ code _ <&3 && [[ $$code == 200 ]]`;
