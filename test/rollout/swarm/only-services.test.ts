import assert from "node:assert/strict";
import { test } from "node:test";
import { onlyServices } from "../../../src/rollout/swarm/only-services.ts";

const file = `version: "3.13"
services:
  "123":
    image: a
  app:
    environment:
      TEXT: |
        services:
          hotpush:

        volumes:
    image: shop-app
  hotpush:
    image: hotpush
volumes:
  state: {}
`;

/** Newer versions of docker indent by four. */
const indented = file.replace(/^ +/gm, (spaces) => spaces + spaces);

for (const [text, width] of [
  [file, "two"],
  [indented, "four"],
] as const) {
  test(`only the services that are named stay, with all that is no service (indented by ${width})`, () => {
    const app = text.slice(
      text.indexOf("\n", text.indexOf("image: a")) + 1,
      text.search(/^ +hotpush:\n +image/m),
    );
    assert.equal(onlyServices(text, ["app"]), `version: "3.13"\nservices:\n${app}volumes:\n${volumes(text)}`);
    const both = onlyServices(text, ["hotpush", "123"]);
    assert.match(both, /^ +"123":\n +image: a\n +hotpush:\n +image: hotpush\nvolumes:/m);
    assert.doesNotMatch(both, /shop-app/);
  });
}

test("all services are the file as it was, also where nothing comes after them", () => {
  const names = ["123", "app", "hotpush"];
  assert.equal(onlyServices(file, names), file);
  const short = file.slice(0, file.indexOf("volumes:\n  state"));
  assert.equal(onlyServices(short, names), short);
});

test("a service that is not there is a problem that names it", () => {
  assert.throws(() => onlyServices(file, ["app", "web"]), /does not show the service web/);
});

function volumes(text: string): string {
  return text.slice(text.lastIndexOf("volumes:\n") + "volumes:\n".length);
}
