import assert from "node:assert/strict";
import { test } from "node:test";
import {
  findFreeSubnet,
  formatSubnet,
  parseNetworkRange,
  parseSubnet,
  type Subnet,
} from "../../src/config/subnet.ts";

function subnet(text: string): Subnet {
  const parsed = parseSubnet(text);
  assert.ok(parsed, text);
  return parsed;
}

function firstFree(range: string, ...taken: readonly string[]): string | null {
  const free = findFreeSubnet(subnet(range), taken.map(subnet));
  return free && formatSubnet(free);
}

test("a subnet is written as it was read", () => {
  for (const text of ["10.231.0.0/16", "0.0.0.0/0", "255.255.255.255/32", "192.168.10.128/25"])
    assert.equal(formatSubnet(subnet(text)), text);
});

test("anything but a whole IPv4 subnet is refused", () => {
  const faulty = [
    "10.231.0.0",
    "10.231.0.0/33",
    "10.231.0.1/16",
    "fd00::/64",
    "10.231.0/16",
    "/16",
    "",
    "1.2.3.4/32/1",
  ];
  for (const text of faulty) assert.equal(parseSubnet(text), null, text);
});

test("the first free subnet is the lowest that overlaps none of the others", () => {
  assert.equal(firstFree("10.231.0.0/16"), "10.231.0.0/27");
  assert.equal(firstFree("10.231.0.0/16", "10.231.0.0/27", "10.231.0.64/27"), "10.231.0.32/27");
  assert.equal(firstFree("10.231.0.0/16", "10.231.0.16/28"), "10.231.0.32/27");
  assert.equal(firstFree("10.231.0.0/16", "10.231.0.0/24"), "10.231.1.0/27");
  assert.equal(firstFree("10.231.0.0/16", "172.17.0.0/16"), "10.231.0.0/27");
});

test("a range that is used up, or covered by a larger network, has no free subnet", () => {
  assert.equal(firstFree("10.231.0.0/26", "10.231.0.0/27", "10.231.0.32/27"), null);
  assert.equal(firstFree("10.231.0.0/16", "10.0.0.0/8"), null);
});

test("a range is refused if it has no room for one network", () => {
  assert.equal(parseNetworkRange("10.231.0.0/28"), null);
  assert.deepEqual(parseNetworkRange("10.231.0.0/27"), subnet("10.231.0.0/27"));
});
