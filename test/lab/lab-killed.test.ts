import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import { expect } from "chai";
import { labInterfaces } from "#lab/bridge.ts";
import { foldersOf } from "#lab/cgroup.ts";
import { openLab, type NodeSpec } from "#lab/lab.ts";
import { findLoops } from "#lab/loops.ts";
import { findPlace } from "#lab/place.ts";
import { must } from "#lab/run-command.ts";
import { codeOf } from "../support/rejection.ts";

const name = "killed";
const specs: readonly NodeSpec[] = [
  { name: "n1", kind: "debian", disks: ["50M"] },
  { name: "b1", kind: "busybox", disks: ["50M"] },
];

/** Begins `up` or `down` in a process of its own and kills that after so many milliseconds. */
async function beginAndKill(call: string, milliseconds: number): Promise<void> {
  const module = JSON.stringify(resolve(import.meta.dirname, "../../src/lab/lab.ts"));
  const program = `const { openLab } = await import(${module}); await (await openLab({ name: "${name}" })).${call};`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "ignore" });
  const timer = setTimeout(() => child.kill("SIGKILL"), milliseconds);
  await once(child, "exit");
  clearTimeout(timer);
}

describe("a lab command that is killed", function () {
  this.timeout(400_000); // the first run on a machine makes the images

  before(async () => {
    const lab = await openLab({ name });
    await lab.up(specs);
    await lab.down();
  });

  after(async () => (await openLab({ name })).down());

  for (const milliseconds of [200, 350, 500, 800]) {
    it(`can be given again after ${milliseconds} ms`, async () => {
      const lab = await openLab({ name });
      await beginAndKill(`up(${JSON.stringify(specs)})`, milliseconds);
      const nodes = await lab.up(specs);
      for (const node of nodes) expect((await node.exec("hostname")).stdout).to.equal(`${node.name}\n`);
      await beginAndKill("down()", milliseconds - 50);
      await lab.down();
      const place = await findPlace({ name });
      const left = [...labInterfaces(place), ...foldersOf(place.group), ...(await findLoops(`${place.folder}/`))];
      expect(left).to.deep.equal([]);
      expect(existsSync(place.folder)).to.equal(false);
    });
  }

  it("can be given again when it had made the bridge and not yet written whose it is", async () => {
    const place = await findPlace({ name });
    const lab = await openLab({ name });
    await lab.up(specs);
    await must("ip", ["link", "set", place.bridge, "alias", ""]);
    await lab.up(specs);
    await lab.down();
    expect(labInterfaces(place)).to.deep.equal([]);
  });

  it("does not take a bridge of the same name that somebody else made", async () => {
    const place = await findPlace({ name });
    const lab = await openLab({ name });
    await must("ip", ["link", "add", place.bridge, "type", "bridge"]);
    try {
      const code = await codeOf(lab.up(specs));
      expect(code).to.equal("LAB_NETWORK_TAKEN");
      await lab.down();
      expect(labInterfaces(place)).to.deep.equal([place.bridge]);
    } finally {
      await must("ip", ["link", "delete", place.bridge]);
    }
  });

  it("is also made good by “down” when somebody has removed the lab's folder", async () => {
    const lab = await openLab({ name });
    await lab.up(specs);
    const place = await findPlace({ name });
    await rm(place.folder, { recursive: true });
    expect(labInterfaces(place)).to.not.deep.equal([]);
    await lab.down();
    expect([
      ...labInterfaces(place),
      ...foldersOf(place.group),
      ...(await findLoops(`${place.folder}/`)),
    ]).to.deep.equal([]);
  });
});
