import assert from "node:assert/strict";
import { test } from "node:test";
import { containerIdIn, hasMounts } from "../../../src/platform/docker/mountinfo.ts";
import { hostPathOf, locateIn, projectOf } from "../../../src/rollout/compose/locate-project.ts";
import { isProblem } from "../../harness/is-problem.ts";

const id = "0123456789abcdef".repeat(4);
const mountInfo = `21 20 0:19 / /proc rw - proc proc rw
30 20 254:0 /var/lib/docker/containers/${id}/hostname /etc/hostname rw - ext4 /dev/vda rw
31 20 254:0 /srv/shop /app rw - ext4 /dev/vda rw
`;

test("a container is recognized by the source of its /etc/hostname", () => {
  assert.equal(containerIdIn(mountInfo), id);
  assert.equal(containerIdIn("21 20 0:19 / /proc rw - proc proc rw\n"), null);
});

test("a container whose mounts are not in here is another one", () => {
  assert.equal(hasMounts(mountInfo, ["/app"]), true);
  assert.equal(hasMounts(mountInfo, ["/app", "/etc/vpn"]), false);
});

test("the host's path is that of the innermost mount", () => {
  const mounts = [
    { source: "/srv", target: "/repos" },
    { source: "/home/me/shop", target: "/repos/shop" },
  ];
  assert.equal(hostPathOf(mounts, "/repos/shop"), "/home/me/shop");
  assert.equal(hostPathOf(mounts, "/repos/shop/deploy"), "/home/me/shop/deploy");
  assert.equal(hostPathOf(mounts, "/repos/shopping"), "/srv/shopping");
  assert.equal(hostPathOf(mounts, "/app"), null);
});

const labels = {
  "com.docker.compose.project": "store",
  "com.docker.compose.project.working_dir": "/srv/shop",
  "com.docker.compose.project.config_files": "/srv/shop/prod.yaml",
};
const target = { projectDirectory: "/app", files: [] };

test("the project that Hotpush belongs to keeps its name and its files", () => {
  assert.deepEqual(projectOf({ labels }, target, "/srv/shop"), {
    projectName: "store",
    files: ["/srv/shop/prod.yaml"],
  });
});

test("the usual files are left to compose to find", () => {
  const usual = { ...labels, "com.docker.compose.project.config_files": "/srv/shop/compose.yaml" };
  assert.deepEqual(projectOf({ labels: usual }, target, "/srv/shop"), { projectName: "store", files: [] });
});

test("another project than Hotpush's own is left to its own name", () => {
  assert.deepEqual(projectOf({ labels }, target, "/srv/other"), {});
});

test("a project mounted elsewhere is located with both of its paths", () => {
  const mounts = [{ source: "/srv/shop", target: "/app" }];
  assert.deepEqual(locateIn({ labels, mounts }, target), {
    projectDirectory: "/srv/shop",
    directoryHere: "/app",
    projectName: "store",
    files: ["/srv/shop/prod.yaml"],
  });
});

test("a helper with the same mounts and no labels finds the project by its arguments", () => {
  const mounts = [
    { source: "/srv", target: "/srv" },
    { source: "/srv/shop", target: "/app" },
  ];
  const { directoryHere = "", ...found } = locateIn({ labels, mounts }, target);
  const told = { projectDirectory: directoryHere, files: found.files };
  const { projectName: _, ...same } = { ...found, directoryHere };
  assert.deepEqual(locateIn({ labels: {}, mounts }, told), same);
});

test("a project that is not mounted from the host is refused", () => {
  assert.throws(
    () => locateIn({ labels, mounts: [] }, target),
    isProblem("repository_not_mounted", /^\/app /),
  );
});
