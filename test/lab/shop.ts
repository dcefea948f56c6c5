import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Ending, TestProject } from "./project.ts";
import { makeRolledProject, type RolledProject } from "./rolled-project.ts";

/** The lab's project with an app on PostgreSQL, and a migration that the app waits for. */
export interface Shop extends RolledProject {
  /** Writes a version of the app, which writes to `column` of the table `orders`, with a migration, and rolls it out. */
  readonly release: (number: number, column: string, migration: string) => Promise<Ending>;
  /** Queries the database. @returns psql's unaligned output */
  readonly ask: (query: string) => Promise<string>;
}

/** Makes it, with its first version serving. */
export async function makeShop(labEnv: NodeJS.ProcessEnv): Promise<Shop> {
  const project = await makeRolledProject(labEnv, async (made) => {
    await writeFile(join(made.directory, "compose.override.yaml"), JSON.stringify(composeFile(made)));
    await writeVersion(made, 1, "note");
  });
  const release: Shop["release"] = async (number, column, migration) => {
    await writeVersion(project, number, column);
    await writeFile(join(project.directory, "shop", "sql", `${number}.sql`), migration);
    return project.rollOut({ args: ["--commit", String(number).repeat(40)] });
  };
  const psql = ["psql", "--dbname", "shop", "--tuples-only", "--no-align", "--command"];
  const ask = (query: string) => project.docker("compose", "exec", "--no-TTY", "db", ...psql, query);
  return { ...project, release, ask };
}

function writeVersion({ directory }: TestProject, number: number, column: string): Promise<void> {
  const version = { version: `v${number}`, column };
  return writeFile(join(directory, "shop", "version.json"), JSON.stringify(version));
}

function composeFile({ name }: TestProject): object {
  const [image, isReady] = [`${name}-shop`, { db: { condition: "service_healthy" } }];
  const check = ["CMD", "pg_isready", "--host", "127.0.0.1"];
  const healthcheck = { test: check, interval: "5s", start_period: "30s", start_interval: "200ms" };
  return {
    services: {
      db: { build: "shop/postgres", volumes: ["data:/var/lib/postgresql"], healthcheck },
      migrate: { image, command: ["node", "migrate.js"], depends_on: isReady },
      app: {
        image,
        build: { context: ".", dockerfile: "shop/Dockerfile" },
        depends_on: { ...isReady, migrate: { condition: "service_completed_successfully" } },
      },
    },
    volumes: { data: {} },
  };
}
