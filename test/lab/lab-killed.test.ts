import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import { expect } from "chai";
import { labInterfaces } from "#lab/bridge.ts";
import { groupFolders } from "#lab/cgroup.ts";
import { openLab, type NodeSpec } from "#lab/lab.ts";
import { findLoops } from "#lab/processes.ts";
import { findLabPlace, labNames, type PlaceOptions } from "#lab/place.ts";
import { mustRun } from "#lab/run-command.ts";
import { ownLab, type OwnLab } from "#support/own-lab.ts";
import { codeOf } from "#support/rejection.ts";

const specs: readonly NodeSpec[] = [
  { name: "n1", kind: "debian", disks: ["50M"] },
  { name: "b1", kind: "busybox", disks: ["50M"] },
];

/** Starts `up` or `down` in a process of its own, and kills it after so many milliseconds. */
async function beginAndKill(where: PlaceOptions, call: string, milliseconds: number): Promise<void> {
  const module = JSON.stringify(resolve(import.meta.dirname, "../../src/lab/lab.ts"));
  const program = `const { openLab } = await import(${module}); await (await openLab(${JSON.stringify(where)})).${call};`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "ignore" });
  const timer = setTimeout(() => child.kill("SIGKILL"), milliseconds);
  await once(child, "exit");
  clearTimeout(timer);
}

describe("a lab command that was killed", function () {
  this.timeout(900_000); // the first run on a machine makes the images

  let own: OwnLab;
  before(async () => {
    own = await ownLab();
    const lab = await openLab(own.where);
    await lab.up(specs);
    await lab.down();
  });

  after(() => own?.down());

  for (const milliseconds of [200, 350, 500, 800]) {
    it(`can be repeated after a kill at ${milliseconds} ms`, async () => {
      const lab = await openLab(own.where);
      await beginAndKill(own.where, `up(${JSON.stringify(specs)})`, milliseconds);
      const nodes = await lab.up(specs);
      for (const node of nodes) expect((await node.exec("hostname")).stdout).to.equal(`${node.name}\n`);
      await beginAndKill(own.where, "down()", milliseconds - 50);
      await lab.down();
      const place = await findLabPlace(own.where);
      const left = [...labInterfaces(place), ...groupFolders(place.group), ...(await findLoops(`${place.folder}/`))];
      expect(left).to.deep.equal([]);
      expect(existsSync(place.folder)).to.equal(false);
    });
  }

  it("can be repeated when it had made the bridge but not yet recorded it", async () => {
    const place = await findLabPlace(own.where);
    const lab = await openLab(own.where);
    await lab.up(specs);
    await mustRun("ip", ["link", "set", place.bridge, "alias", ""]);
    await lab.up(specs);
    await lab.down();
    expect(labInterfaces(place)).to.deep.equal([]);
  });

  it("does not take a bridge of the same name that another program made", async () => {
    const place = await findLabPlace(own.where);
    const lab = await openLab(own.where);
    await mustRun("ip", ["link", "add", place.bridge, "type", "bridge"]);
    try {
      const code = await codeOf(lab.up(specs));
      expect(code).to.equal("LAB_NETWORK_TAKEN");
      await lab.down();
      expect(labInterfaces(place)).to.deep.equal([place.bridge]);
    } finally {
      await mustRun("ip", ["link", "delete", place.bridge]);
    }
  });

  it("is cleaned up by “down” even when the lab's folder is gone", async () => {
    const lab = await openLab(own.where);
    await lab.up(specs);
    const place = await findLabPlace(own.where);
    await rm(place.folder, { recursive: true });
    expect(labInterfaces(place)).to.not.deep.equal([]);
    await lab.down();
    expect([
      ...labInterfaces(place),
      ...groupFolders(place.group),
      ...(await findLoops(`${place.folder}/`)),
    ]).to.deep.equal([]);
  });

  it("in a test's lab is cleaned up by the next test, which leaves other labs alone", async () => {
    const lab = await openLab(own.where);
    await lab.up(specs);
    const module = JSON.stringify(resolve(import.meta.dirname, "../support/own-lab.ts"));
    const program = `const { ownLab } = await import(${module}); const lab = await ownLab(); await lab.up(${JSON.stringify(specs.slice(1))}); console.log(lab.name);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [printed] = (await once(child.stdout, "data")) as [Buffer];
    child.kill("SIGKILL");
    await once(child, "close");
    const left = printed.toString().trim();
    expect(await labNames()).to.include.members([left, lab.name]);
    const next = await ownLab();
    try {
      expect(await labNames())
        .to.include(lab.name)
        .and.not.include(left);
      expect(next.name).not.to.equal(lab.name);
    } finally {
      await next.down();
      await lab.down();
    }
  });
});
