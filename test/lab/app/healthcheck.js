import { get } from "node:http";

get("http://127.0.0.1:8080/health", (response) => {
  response.pipe(process.stdout);
  response.on("end", () => process.exit(response.statusCode === 200 ? 0 : 1));
}).on("error", (error) => {
  console.log(error.message);
  process.exit(1);
});
