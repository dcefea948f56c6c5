import { redactedPartsOf } from "../../redaction/redactable.ts";
import { createRedactor } from "../../redaction/redactor.ts";
import { readSecretFile } from "../../redaction/secret-file.ts";
import { looksLikeSecretFile } from "../../redaction/secret-names.ts";
import { secretsInVariable } from "../../redaction/secrets-in-variable.ts";
import type { Container } from "./container.ts";

/** How many of a container's last log lines are shown. */
export const shownLogLines = 20;

/** What is known of a container that may hold secrets. */
export type SecretHolder = Pick<Container, "environment" | "mounts">;

/**
 * What a container left that explains its failure: the output of its last health check, and its last log lines
 * (`logLines`, already redacted).
 */
export function evidenceOf(
  container: SecretHolder & Pick<Container, "healthLog">,
  logLines: readonly string[],
): readonly string[] {
  const health = container.healthLog.slice(-1).map((output) => withoutSecrets(container, output));
  return [
    ...section(
      "Last health check:",
      health.flatMap((output) => output.split("\n")),
    ),
    ...section("Last log lines:", logLines),
  ];
}

/** `text` with the secrets that a container has, in its environment and in files mounted into it, replaced. */
export function withoutSecrets(container: SecretHolder, text: string): string {
  const secrets = container.environment.flatMap((variable) => secretsOf(container, variable));
  const mounted = container.mounts.filter(({ target }) => target.startsWith("/run/secrets/"));
  const all = [...secrets, ...mounted.map(({ source }) => readSecretFile(source))];
  return createRedactor(all.flatMap(redactedPartsOf)).text(text);
}

function secretsOf({ mounts }: SecretHolder, variable: string): readonly string[] {
  const [, name = "", value = ""] = /^([^=]*)=(.*)$/s.exec(variable) ?? [];
  const file = looksLikeSecretFile(name) ? mounts.find(({ target }) => target === value) : undefined;
  return [...secretsInVariable(name, value), ...(file ? [readSecretFile(file.source)] : [])];
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
}
