// Sends requests to the URL in its argument, with kept and with new connections, until its input ends. Then it prints how many
// there were, and why some failed.
import { Agent, get } from "node:http";

const [, , url] = process.argv;
const [versions, failures] = [new Set(), []];
let requests = 0;
let isOver = false;

function ask(agent) {
  return new Promise((resolve) => {
    const fail = ({ message }) => resolve(failures.push(message));
    get(url, { agent }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece) => {
        text += piece;
      });
      response.on("error", fail).on("end", () => {
        if (response.statusCode === 200) resolve(versions.add(text.split(" ")[0]));
        else fail({ message: `status ${response.statusCode}` });
      });
    }).on("error", fail);
  });
}

async function repeat(agent) {
  while (!isOver) {
    await ask(agent);
    requests += 1;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

process.stdin.resume().on("end", () => {
  isOver = true;
});
const agents = [1, 2, 3].map(() => new Agent({ keepAlive: true, maxSockets: 1 }));
await Promise.all([...agents, false, false, false].map(repeat));
for (const agent of agents) agent.destroy();
console.log(JSON.stringify({ requests, failures, versions: [...versions] }));
