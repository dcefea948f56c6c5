import type { TestResult } from "../notifications/targets.ts";
import { jsonReply, type Route } from "./route.ts";

/** The results of test messages, as commands print them with --json. */
export interface NotifyJson {
  readonly project: string;
  readonly results: readonly TestResult[];
}

/** Sends a test message to each target of the project. */
export const testNotifications: Route = async ({ project, notify }) => {
  const { sendTestMessages } = await import("../notifications/targets.ts");
  const { signal } = new AbortController();
  const results = await sendTestMessages(notify, project, signal);
  return jsonReply({ project, results } satisfies NotifyJson);
};
