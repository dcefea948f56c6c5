import assert from "node:assert/strict";
import { test } from "node:test";
import { looksSecret } from "../../src/redaction/detect-secrets.ts";

test("names that tell of a secret are known, in their usual ways of writing", () => {
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

test("names that tell of no secret, or of where one is, are left alone", () => {
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
