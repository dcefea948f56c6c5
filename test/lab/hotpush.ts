/** The command line alone, without the service, as a process that a test can kill. */
import { runCommandLine } from "../../src/cli/command-line.ts";

process.exitCode = await runCommandLine(process.argv.slice(2), process.env);
