import assert from "node:assert/strict";
import { test } from "node:test";
import { createMachineRoom } from "../../../src/rollout/side-by-side/machine-room.ts";

/** Works that begin and end when the test says so. */
function watched() {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const work = (name: string) => () => {
    begun.push(name);
    return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
  };
  const end = async (name: string) => {
    ends.get(name)?.();
    await new Promise(setImmediate);
  };
  return { begun, work, end };
}

test("works begin as long as there is room, in the order in which they came", async () => {
  const { begun, work, end } = watched();
  const { beside } = createMachineRoom({ works: 2, bytes: 100 });
  for (const name of ["a", "b", "c"]) void beside(10, work(name));
  await end("none");
  assert.deepEqual(begun, ["a", "b"]);
  await end("b");
  assert.deepEqual(begun, ["a", "b", "c"]);
});

test("a work waits until there is memory for it, and those after it wait too", async () => {
  const { begun, work, end } = watched();
  const { beside } = createMachineRoom({ works: 9, bytes: 100 });
  void beside(60, work("a"));
  void beside(60, work("b"));
  void beside(1, work("c"));
  await end("none");
  assert.deepEqual(begun, ["a"]);
  await end("a");
  assert.deepEqual(begun, ["a", "b", "c"]);
});

test("a work that needs more than there is has its turn when no other has", async () => {
  const { begun, work, end } = watched();
  const { beside } = createMachineRoom({ works: 9, bytes: 100 });
  void beside(50, work("a"));
  void beside(500, work("large"));
  void beside(1, work("b"));
  await end("none");
  await end("a");
  assert.deepEqual(begun, ["a", "large"]);
  await end("large");
  assert.deepEqual(begun, ["a", "large", "b"]);
});

test("a work alone waits for the others, and they wait for it", async () => {
  const { begun, work, end } = watched();
  const { beside, alone } = createMachineRoom({ works: 9, bytes: 100 });
  void beside(1, work("a"));
  void alone(work("proxy"));
  void beside(1, work("b"));
  await end("none");
  assert.deepEqual(begun, ["a"]);
  await end("a");
  assert.deepEqual(begun, ["a", "proxy"]);
  await end("proxy");
  assert.deepEqual(begun, ["a", "proxy", "b"]);
});

test("a work that fails gives its turn to the next", async () => {
  const { alone } = createMachineRoom({ works: 1, bytes: 1 });
  await assert.rejects(
    alone(async () => Promise.reject(new Error("sick"))),
    /sick/,
  );
  assert.equal(await alone(async () => "good"), "good");
});
