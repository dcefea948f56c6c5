import assert from "node:assert/strict";
import { test } from "node:test";
import { withoutOldSettings } from "../../../src/init/move/old-settings.ts";

const text = `# mine
DATABASE_URL=postgres://db/shop

# Hotpush, by \`hotpush init\`
WEBHOOK_SECRET=0123
REPO_PATH=/srv/shop
SITE='shop.example.org, http://:8080'
DOCKER_GID=999
COMPOSE_FILE=/srv/shop/compose.yaml:/srv/shop/compose.hotpush.yaml
DEPLOY_TIMEOUT=10m
`;

test("a person's lines stay, and so does COMPOSE_FILE", () => {
  assert.equal(
    withoutOldSettings(text, ["services: {web: {image: shop}}"]),
    `# mine
DATABASE_URL=postgres://db/shop

# Hotpush, by \`hotpush init\`
COMPOSE_FILE=/srv/shop/compose.yaml:/srv/shop/compose.hotpush.yaml
DEPLOY_TIMEOUT=10m
`,
  );
});

test("a variable that a compose file of theirs uses stays", () => {
  for (const use of ["$SITE", "$" + "{SITE}", "$" + "{SITE:-none}"])
    assert.match(withoutOldSettings(text, [`environment: {URL: "${use}"}`]), /^SITE=/m, use);
  assert.doesNotMatch(withoutOldSettings(text, ['environment: {URL: "$SITE_NAME"}']), /^SITE=/m);
});
