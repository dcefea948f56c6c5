import assert from "node:assert/strict";
import { test } from "node:test";
import { createRedactor, looksLikeSecretFile, secretsInVariable } from "../src/redaction.ts";
import { redacted } from "./harness/secrecy.ts";

const hexSecret = "7d1f0c5e9a3b48d2860e4f7a1b9c3d5e7f20418693ab5cd7ef1829304a5b6c7d";

test("a long secret in a line without an end is redacted, wherever it stands and a write ends", () => {
  const long = `${hexSecret}${hexSecret.slice(0, 36).toUpperCase()}`;
  const redactor = createRedactor([long]);
  for (const before of [8_150, 65_400, 65_450, 65_471, 65_472, 65_500, 65_536, 70_000]) {
    for (const end of [1, 40, 64, 99]) {
      const pieces = ["x".repeat(before), long.slice(0, end), long.slice(end), "y".repeat(70_000)];
      const bytes = pieces.map((piece) => Buffer.from(piece));
      const output = redacted(redactor, bytes).replaceAll("\n", "");
      assert.match(output, /^x+(?:\*{3})+y+$/, `${before} ${end}`);
    }
  }
});

test("no secret and no output of a script holds up the process", () => {
  const shared = Array.from({ length: 4_000 }, (_, index) => `aaaaaa${String(index).padStart(5, "0")}`);
  for (const [secrets, text] of [
    [[`${"a".repeat(60_000)}b`], "a".repeat(64 * 1024)],
    [shared, "aaaaaa0".repeat(9_000)],
    [Array.from({ length: 50 }, (_, index) => `${index}${"x".repeat(64 * 1024)}`), "x".repeat(64 * 1024)],
  ] as const) {
    const before = process.cpuUsage();
    createRedactor(secrets).text(text);
    const { user } = process.cpuUsage(before);
    assert.ok(user < 1_500_000, `${user / 1_000} ms`);
  }
});

test("lines of a key are redacted; short values, common words and PEM boundaries are not", () => {
  const line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw";
  const key = `-----BEGIN PRIVATE KEY-----\n${line}\r\n  ${line}x\nMII=\n-----END PRIVATE KEY-----\n`;
  const redactor = createRedactor([key, "short", "enough", "postgres", "", "  blanks around \n"]);
  assert.equal(
    redactor.text(`${key}short enough postgres blanks around`),
    "-----BEGIN PRIVATE KEY-----\n***\r\n  ***\nMII=\n-----END PRIVATE KEY-----\nshort *** postgres ***",
  );
});

test("passwords are found in URLs, connection strings, webhook addresses and JSON", () => {
  const auth = Buffer.from("deployer:secret-of-the-registry").toString("base64");
  for (const [value, secret, name = "ANY"] of [
    ["postgres://app:secret%2Fof-url@db/app", "secret/of-url"],
    ["https://glpat-a-token-without-a-name@git.example/app.git", "glpat-a-token-without-a-name"],
    [`Authorization: Basic ${auth}`, "secret-of-the-registry"],
    ["Authorization: Bearer from-a-header", "from-a-header"],
    ["Server=db,1433;User Id=sa;Password=one two&3=x;Encrypt=True;", "one two&3=x"],
    ["AccountName=shop;AccountKey=a2V5LW9mLWF6dXJl==;EndpointSuffix=core", "a2V5LW9mLWF6dXJl=="],
    ["host=db user=app password='secret-of-libpq' dbname=app", "secret-of-libpq"],
    ["cache:6379,password=secret-of-redis,ssl=True", "secret-of-redis"],
    ["jdbc:postgresql://db/app?user=app&password=secret%20of%20jdbc&ssl=true", "secret of jdbc"],
    ["-Xmx1g -Dspring.datasource.password=secret-of-java", "secret-of-java"],
    ["https://hooks.slack.com/services/T0001/B0001/abcdefghijklmnopqrstuvwx", "abcdefghijklmnopqrstuvwx"],
    ["https://discord.com/api/webhooks/123456/abc-DEF_ghi0123456789", "abc-DEF_ghi0123456789"],
    ["https://chat.example/in/0123456789abcdef", "0123456789abcdef", "CHAT_WEBHOOK_URL"],
    [JSON.stringify({ auths: { r: { auth } } }), "secret-of-the-registry"],
    [JSON.stringify({ db: JSON.stringify({ password: "secret-of-json" }) }), "secret-of-json"],
  ] as const)
    assert.ok(secretsInVariable(name, value).includes(secret), value);
});

test("nothing is found in values without a secret", () => {
  for (const value of [
    "git@github.com:octo/app.git",
    "ghcr.io/octo/app@sha256:0123456789abcdef",
    "ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new",
    "https://app.example/hooked/path?page=2",
    '{"log-level":"info"}',
    "[".repeat(100_000),
  ])
    assert.deepEqual(secretsInVariable("ANY", value), [], value.slice(0, 80));
});

test("names of secrets are recognised, and those of a secret's place are not", () => {
  const secret =
    "GITHUB_TOKEN SECRET SECRET_KEY_BASE PGPASSWORD MYSQL_PASSWD DB_PASS DB_PWD SSH_PASSPHRASE AWS_ACCESS_KEY_ID APP_KEY stripeApiKey GOOGLE_CREDENTIALS GITLAB_PAT REDIS_AUTH JWT DSN";
  const plain =
    "PATH PWD OLDPWD SSH_AUTH_SOCK GIT_ASKPASS GIT_AUTHOR_NAME KEYBOARD DB_PASSWORD_FILE SSL_KEY_PATH COMPOSE_FILE PATTERN COMPASS";
  for (const name of secret.split(" "))
    assert.deepEqual(secretsInVariable(name, "a value"), ["a value"], name);
  for (const name of plain.split(" ")) assert.deepEqual(secretsInVariable(name, "a value"), [], name);
  assert.deepEqual(secretsInVariable("DEPLOY_KEY", "/etc/no-such-directory/key"), []);
  assert.deepEqual(secretsInVariable("DEPLOY_KEY", "/no-such/directory"), ["/no-such/directory"]);
  assert.ok(looksLikeSecretFile("DB_PASSWORD_FILE") && !looksLikeSecretFile("COMPOSE_FILE"));
});
