import assert from "node:assert/strict";
import { test } from "node:test";
import { looksSecret, secretsInVariable } from "../../src/redaction/detect-secrets.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");

test("passwords are found in connection strings of every form", () => {
  for (const [value, password] of [
    ["Server=db,1433;Database=app;User Id=sa;Password=one two&3=x;Encrypt=True;", "one two&3=x"],
    ["Data Source=db;Pwd=secret-of-db", "secret-of-db"],
    ['Server=db;Password="with ; and "" in it";Timeout=30', 'with ; and " in it'],
    ["AccountName=shop;AccountKey=a2V5LW9mLWF6dXJl==;EndpointSuffix=core.windows.net", "a2V5LW9mLWF6dXJl=="],
    ["Endpoint=sb://bus.example/;SharedAccessKeyName=root;SharedAccessKey=key-of-the-bus", "key-of-the-bus"],
    ["host=db user=app password=secret-of-libpq dbname=app", "secret-of-libpq"],
    ["host=db password = 'it\\'s secret' dbname=app", "it's secret"],
    ["cache:6379,password=secret-of-redis,ssl=True", "secret-of-redis"],
    ["jdbc:postgresql://db/app?user=app&password=secret%20of%20jdbc&ssl=true", "secret of jdbc"],
    ["jdbc:sqlserver://db:1433;databaseName=app;user=sa;password=secret-of-jdbc", "secret-of-jdbc"],
    ["-Xmx1g -Dspring.datasource.password=secret-of-java -Dserver.port=80", "secret-of-java"],
    ["api-key=secret-of-telemetry,region=eu", "secret-of-telemetry"],
  ] as const) {
    assert.ok(secretsInVariable("ANY", value).includes(password), value);
  }
});

test("passwords are found in data source names without a scheme", () => {
  for (const [value, password] of [
    ["app:secret-of-go@tcp(db:3306)/shop?parseTime=true", "secret-of-go"],
    ["app:p@ss:w/rd@unix(/run/mysqld.sock)/shop", "p@ss:w/rd"],
    ["app:secret%2Fencoded@db.internal:5432/shop", "secret/encoded"],
    ["app:secret-of-the-host@db", "secret-of-the-host"],
  ] as const) {
    assert.ok(secretsInVariable("ANY", value).includes(password), value);
  }
});

test("the tokens of webhook addresses are found, by the service or by the variable's name", () => {
  for (const [name, value, token] of [
    [
      "A",
      "https://hooks.slack.com/services/T0001/B0001/abcdefghijklmnopqrstuvwx",
      "abcdefghijklmnopqrstuvwx",
    ],
    [
      "B",
      "https://discord.com/api/webhooks/123456789012345678/abc-DEF_ghi0123456789",
      "abc-DEF_ghi0123456789",
    ],
    [
      "C",
      "https://x.webhook.office.com/webhookb2/11-22@33-44/IncomingWebhook/0123456789abcdef0/55",
      "0123456789abcdef0",
    ],
    [
      "D",
      "https://prod.logic.azure.com/workflows/1/triggers/manual/paths/invoke?sp=%2F&sig=abcdefgh_ijk",
      "abcdefgh_ijk",
    ],
    ["E", "https://chat.example:8065/sub/hooks/xo8fhk3wq7bi9mcz", "xo8fhk3wq7bi9mcz"],
    ["F", "https://api.telegram.org/bot123456:ABC-DEF1234ghIkl/sendMessage", "123456:ABC-DEF1234ghIkl"],
    [
      "G",
      "https://chat.googleapis.com/v1/spaces/A/messages?key=public-key&token=secret-of-chat",
      "secret-of-chat",
    ],
    ["CHAT_WEBHOOK_URL", "https://chat.example/in/0123456789abcdef", "0123456789abcdef"],
  ] as const) {
    assert.ok(secretsInVariable(name, value).includes(token), value);
  }
});

test("passwords are found in JSON, those of Docker's registries decoded too", () => {
  const auth = base64("deployer:secret-of-the-registry");
  const auths = {
    "registry.example": { auth },
    "other.example": { username: "me", password: "secret-of-other" },
  };
  const found = secretsInVariable("DOCKER_AUTH_CONFIG", JSON.stringify({ auths }, null, 2));
  assert.deepEqual(found, [auth, "secret-of-the-registry", "secret-of-other"]);
  const nested = JSON.stringify({ db: JSON.stringify({ url: "postgres://app:secret-of-json@db/app" }) });
  assert.ok(secretsInVariable("APP_SETTINGS", nested).includes("secret-of-json"));
  assert.deepEqual(secretsInVariable("APP_SETTINGS", "[".repeat(100_000)), []);
});

test("nothing is found in values without a secret", () => {
  for (const value of [
    "git@github.com:octo/app.git",
    "registry.example:5000/octo/app:1.2",
    "ghcr.io/octo/app@sha256:0123456789abcdef",
    "mailto:somebody@example.org",
    "npm:left-pad@1.3.0",
    "ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new",
    "https://app.example/hooked/path?page=2",
    "12:30:00",
    "host=db port=5432 dbname=app",
    '{"log-level":"info"}',
    "{not json",
  ]) {
    assert.deepEqual(secretsInVariable("ANY", value), [], value);
  }
});

test("a value of 64 KiB is searched in little time, whatever is in it", () => {
  for (const part of [
    "a.",
    " ",
    "a ",
    "a=",
    "@a/",
    "x://",
    ";a",
    ",a",
    "?a=b",
    "key ",
    "//a/hooks/",
    "'",
    '"',
  ]) {
    const value = `u:${part.repeat((64 * 1024) / part.length)} x`;
    const startMs = performance.now();
    for (const text of [value, value.slice(2), `{"a":${JSON.stringify(value)}}`])
      secretsInVariable("HOOK", text);
    const tookMs = performance.now() - startMs;
    assert.ok(tookMs < 2_000, `${part} took ${tookMs} ms`);
  }
});

test("names of secrets are recognised in their usual forms", () => {
  for (const name of [
    "GITHUB_TOKEN",
    "NPM_TOKEN",
    "SECRET",
    "SECRET_KEY_BASE",
    "DB_PASSWORD",
    "PGPASSWORD",
    "MYSQL_PASSWD",
    "DB_PASS",
    "DB_PWD",
    "SSH_PASSPHRASE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "APP_KEY",
    "STRIPE_APIKEY",
    "stripeApiKey",
    "JWT_PRIVATE_KEY",
    "GOOGLE_CREDENTIALS",
    "GITLAB_PAT",
    "REDIS_AUTH",
  ]) {
    assert.ok(looksSecret(name), name);
  }
});

test("names without a secret, or of a secret's place, are left alone", () => {
  for (const name of [
    "PATH",
    "PWD",
    "OLDPWD",
    "HOME",
    "SSH_AUTH_SOCK",
    "GIT_ASKPASS",
    "GIT_AUTHOR_NAME",
    "SSH_ASKPASS",
    "COMPOSE_PROJECT_NAME",
    "KEYBOARD",
    "DB_PASSWORD_FILE",
    "SSL_KEY_PATH",
    "COMPOSE_FILE",
    "LANG",
    "PATTERN",
    "COMPASS",
  ]) {
    assert.ok(!looksSecret(name), name);
  }
});
