import { expect } from "chai";
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { RunEventBody } from "#engine/events/event.ts";
import { directoryManaged } from "#engine/modules/directory-managed.ts";
import { fileAbsent } from "#engine/modules/file-absent.ts";
import { fileManaged } from "#engine/modules/file-managed.ts";
import { symlinkManaged } from "#engine/modules/symlink-managed.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import { draftOf, performOn, sessionOn, type TestSession } from "#support/sessions.ts";
import { shellsOf } from "#support/shells.ts";
import { howToRepeat, partOf } from "#support/slice.ts";
import { SteppedNode } from "#support/stepped-node.ts";
import { stepOf } from "#support/steps.ts";

const shells = shellsOf(import.meta.filename, ["/bin/dash", "/bin/bash", "/bin/busybox", "/bin/mksh"]);
const longText = (text: string, times: number): string => `${text} 'quoted' \\ $x\n`.repeat(times);

/** A node with a target folder of which a part exists, with wrong contents. */
class BatchNode {
  readonly folder = mkdtempSync(join(tmpdir(), "kcore-batch-"));
  readonly root = join(this.folder, "target");
  readonly node: SteppedNode;

  constructor(shell: string) {
    chmodSync(this.folder, 0o755);
    this.node = new SteppedNode(this.folder, shell);
    this.prepare();
  }

  /** Makes the initial contents for the first run. */
  prepare(): void {
    for (const path of [this.root, this.node.state]) rmSync(path, { recursive: true, force: true });
    mkdirSync(this.root);
    this.fill();
  }

  fill(): void {
    const { root } = this;
    chmodSync(root, 0o755);
    mkdirSync(join(root, "old"), { mode: 0o700 });
    writeFileSync(join(root, "conf"), longText("old", 100), { mode: 0o600 });
    writeFileSync(join(root, "gone"), "away with it");
    symlinkSync("nowhere", join(root, "link"));
  }

  /** The node's processes end a moment after the run. */
  remove(): void {
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  drafts(): UnresolvedStep[] {
    const at = (name: string): string => join(this.root, name);
    return Object.entries({
      folder: stepOf(directoryManaged, { path: at("new"), mode: "0750" }),
      beneath: stepOf(directoryManaged, { path: at("new/deep"), mode: "0755", owner: "nobody" }),
      repaired: stepOf(directoryManaged, { path: at("old"), mode: "0755" }),
      conf: stepOf(fileManaged, { path: at("conf"), content: longText("new", 90), mode: "0644" }),
      kept: stepOf(fileManaged, { path: at("new/kept"), content: longText("kept", 2) }),
      owned: stepOf(fileManaged, { path: at("new/deep/o"), content: "o\n", mode: "0700", owner: "nobody" }),
      link: stepOf(symlinkManaged, { path: at("link"), target: "new/deep" }),
      fresh: stepOf(symlinkManaged, { path: at("fresh"), target: "conf" }),
      gone: stepOf(fileAbsent, { path: at("gone") }),
      last: stepOf(fileManaged, { path: at("old/last"), content: "last\n", mode: "0640", group: "adm" }),
    }).map(([id, step]) => draftOf(id, step));
  }

  /** Everything below the target: type, mode, owner, content. */
  tree(at = this.root): string[] {
    return readdirSync(at)
      .toSorted()
      .flatMap((name) => {
        const path = join(at, name);
        const stats = lstatSync(path);
        const line = `${path.slice(this.root.length)} ${stats.mode.toString(8)} ${stats.uid}:${stats.gid}`;
        if (stats.isSymbolicLink()) return [`${path.slice(this.root.length)} -> ${readlinkSync(path)}`];
        return stats.isDirectory() ? [line, ...this.tree(path)] : [`${line} ${readFileSync(path, "utf8")}`];
      });
  }

  begin(): { run: TestSession; over: Promise<unknown> } {
    const { state, connect } = this.node;
    const run = sessionOn(state, { connect, runId: "r1", retryDelays: [0, 0, 50, 100, 500] });
    return { run, over: run.session.perform([{ stage: "s", drafts: this.drafts() }]) };
  }

  /** Expects every file to be either old or new, not a mixture. */
  expectWholeFiles(): void {
    expect(readFileSync(join(this.root, "conf"), "utf8")).to.be.oneOf([longText("old", 100), longText("new", 90)]);
    for (const line of this.tree())
      if (line.startsWith("/new/kept ")) expect(line.endsWith(longText("kept", 2))).to.equal(true);
  }
}

/** The outcome of each step, with its facts and diff. */
function endsOf(events: readonly RunEventBody[]): unknown[] {
  return events.flatMap((event) =>
    event.type === "step.finished" ? [[event.title, event.outcome, event.changes, event.diff, event.problem]] : [],
  );
}

interface Undisturbed {
  readonly events: unknown[];
  readonly tree: string[];
  readonly points: number;
}

describe("a batch of files, folders and links under faults", () => {
  const nodes = new Set<BatchNode>();
  const nodeOn = (shell: string): BatchNode => {
    const scene = new BatchNode(shell);
    nodes.add(scene);
    return scene;
  };
  afterEach(() => {
    for (const scene of nodes) scene.remove();
    nodes.clear();
  });

  /** Runs once without a fault, for comparison. */
  const undisturbed = async (shell: string): Promise<Undisturbed> => {
    const scene = nodeOn(shell);
    const { run, over } = scene.begin();
    await over;
    await run.session.finish("done");
    return { events: endsOf(run.events), tree: scene.tree(), points: scene.node.count };
  };

  /** Tests several points at once on nodes of their own, since most of the time is waiting. */
  const atPoints = async (
    shell: string,
    points: readonly number[],
    test: (scene: BatchNode, point: number) => Promise<void>,
  ): Promise<void> => {
    const left = [...points];
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        const scene = nodeOn(shell);
        for (let point = left.shift(); point !== undefined; point = left.shift()) {
          scene.prepare();
          scene.node.reset(point);
          await test(scene, point);
        }
      }),
    );
  };

  const faults: Readonly<Record<string, (node: SteppedNode) => Promise<void>>> = {
    "killed, as by a reboot": async (node) => {
      node.signal("SIGKILL");
      await node.cut();
    },
    "cut off": async (node) => {
      await node.cut();
      node.release();
    },
    frozen: async (node) => {
      const pids = node.atWork();
      node.signal("SIGSTOP", pids);
      await pause(100);
      node.signal("SIGCONT", pids);
      node.release();
    },
  };

  for (const shell of shells)
    for (const [what, fault] of Object.entries(faults))
      it(`has the events and files of an undisturbed run when ${what} at any point, in ${shell}`, async () => {
        const expected = await undisturbed(shell);
        expect(expected.points, JSON.stringify(expected.events)).to.be.greaterThan(25);
        // `killed` gets more points than the others. Each commit tries others; the long form tries all.
        const points = partOf(
          Array.from({ length: expected.points }, (_, index) => index + 1),
          what.startsWith("killed") ? 3 : 9,
        );
        let met = 0;
        await atPoints(shell, points, async (scene, point) => {
          const { run, over } = scene.begin();
          // The number of programs differs a little between runs, so that the last points may not come.
          if (await scene.node.reached(over)) {
            met += 1;
            scene.expectWholeFiles();
            await fault(scene.node);
            await over;
          }
          await run.session.finish("done");
          expect(scene.tree(), `point ${point}`).to.deep.equal(expected.tree);
          expect(endsOf(run.events), `point ${point}`).to.deep.equal(expected.events);
        });
        expect(met, howToRepeat()).to.be.greaterThan(points.length / 2);
      });

  for (const shell of shells)
    it(`F-5 fails at the step where the disk filled, and completes in a later run, in ${shell}`, async () => {
      const expected = await undisturbed(shell);
      const points = Array.from({ length: expected.points }, (_, index) => index + 1);
      await atPoints(shell, partOf(points, 6), async (scene, point) => {
        const { root, node } = scene;
        execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k,mode=755", "none", root]);
        try {
          scene.fill();
          const { run, over } = scene.begin();
          await node.reached(over);
          spawnSync("/bin/sh", ["-c", `cat /dev/zero >${root}/fill 2>/dev/null`]);
          node.release();
          await over;
          await run.session.finish("done");
          const failed = run.outcomes().filter((one) => one.endsWith(" failed"));
          expect(failed.length, `${point} ${run.outcomes().join()}`).to.be.lessThan(2);
          scene.expectWholeFiles();
          rmSync(join(root, "fill"));
          rmSync(node.state, { recursive: true });
          const again = scene.begin();
          await again.over;
          await again.run.session.finish("done");
          expect(scene.tree(), `point ${point}`).to.deep.equal(expected.tree);
        } finally {
          while (spawnSync("umount", [root], { stdio: "ignore" }).status !== 0) await pause(20);
        }
      });
    });

  for (const shell of shells)
    it(`keeps the folders made before a failing one, and reports its reason, in ${shell}`, async () => {
      const { root, node } = nodeOn(shell);
      const folder = (name: string) => stepOf(directoryManaged, { path: join(root, name), mode: "0750" });
      const drafts = Object.entries({ a: folder("a"), b: folder("b".repeat(300)), c: folder("c") });
      const run = await performOn(
        node.state,
        drafts.map(([id, step]) => draftOf(id, step)),
        { connect: node.connect, runId: "r1" },
      );
      expect(run.outcomes()).to.have.members(["a changed", "b failed", "c interrupted"]);
      expect(existsSync(join(root, "a"))).to.equal(true);
      expect(existsSync(join(root, "c"))).to.equal(false);
      const reports = run.events.filter((event) => JSON.stringify(event).includes("too long"));
      expect(reports.map((event) => "step" in event && event.step)).to.not.deep.equal([]);
      expect(JSON.stringify(reports)).to.not.match(/"test\/[ac]"/);
    });

  for (const shell of shells)
    it(`stops after a file that cannot be made, in ${shell}`, async () => {
      const { root, node } = nodeOn(shell);
      const file = (name: string, owner: string) =>
        stepOf(fileManaged, { path: join(root, name), content: `${name}\n`, owner });
      const drafts = Object.entries({ a: file("a", "root"), b: file("b", "kcore-no-user"), c: file("c", "root") });
      const run = await performOn(
        node.state,
        drafts.map(([id, step]) => draftOf(id, step)),
        { connect: node.connect, runId: "r1" },
      );
      expect(run.outcomes()).to.deep.equal(["a changed", "b failed"]);
      expect(readdirSync(root)).to.not.include("c");
    });

  for (const shell of shells)
    it(`makes a folder before another below it that is named through a link, in ${shell}`, async () => {
      const { root, node } = nodeOn(shell);
      symlinkSync("run", join(root, "other-name"));
      const folder = (name: string) => stepOf(directoryManaged, { path: join(root, name), mode: "0750" });
      const drafts = {
        first: folder("other"),
        run: folder("run"),
        app: folder("run/app"),
        sub: folder("other-name/app/sub"),
      };
      const run = await performOn(
        node.state,
        Object.entries(drafts).map(([id, step]) => draftOf(id, step)),
        { connect: node.connect, runId: "r1" },
      );
      expect(run.outcomes()).to.have.members(Object.keys(drafts).map((id) => `${id} changed`));
      expect(existsSync(join(root, "run/app/sub"))).to.equal(true);
    });

  it("F-17 starts no further step after a stop", async () => {
    const scene = nodeOn("/bin/dash");
    const middle = Math.floor((await undisturbed("/bin/dash")).points / 3);
    scene.node.reset(middle);
    const { run, over } = scene.begin();
    expect(await scene.node.reached(over)).to.equal(true);
    run.session.stop();
    while (!existsSync(join(scene.node.state, "runs/r1/stop"))) await pause(5);
    scene.node.release();
    await over;
    await run.session.finish("interrupted");
    expect(run.outcomes().length).to.be.greaterThan(0).and.lessThan(scene.drafts().length);
    expect(scene.tree().some((line) => line.startsWith("/old/last "))).to.equal(false);
  });

  for (const shell of shells)
    it(`S-4 ignores lines that the target of a link forges, in ${shell}`, async () => {
      const scene = nodeOn(shell);
      const { root, node } = scene;
      const wanted = stepOf(fileManaged, { path: join(root, "x"), content: "wanted\n", mode: "0644" });
      const { data } = wanted;
      const sum = data?.kind === "file" ? data.blob.sha256 : "";
      const forged = `t\nm 81a4 ${root}/x\n${sum}  ${root}/x\n81a4 7 0 0 root:root ${root}/x\n`;
      symlinkSync(forged, join(root, "bad"));
      const link = stepOf(symlinkManaged, { path: join(root, "bad"), target: "good" });
      const run = await performOn(node.state, [draftOf("link", link), draftOf("x", wanted)], {
        connect: node.connect,
        runId: "r1",
      });
      expect(run.outcomes()).to.deep.equal(["link changed", "x changed"]);
      expect(readFileSync(join(root, "x"), "utf8")).to.equal("wanted\n");
    });
});
