import { expect } from "chai";
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
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
import type { StepDraft } from "#engine/states/planned-step.ts";
import { draftOf, sessionOn, type TestSession } from "#support/sessions.ts";
import { SteppedNode } from "#support/stepped-node.ts";
import { stepOf } from "#support/steps.ts";

const shells = ["/bin/dash", "/bin/bash", "/bin/busybox", "/bin/mksh"];
const words = (text: string, times: number): string => `${text} 'quoted' \\ $x\n`.repeat(times);

describe("a batch of data steps under fault", function () {
  this.timeout(300_000);
  let folder: string;
  let root: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "kcore-batch-"));
    chmodSync(folder, 0o755);
    root = join(folder, "target");
    prepare();
  });
  // The node's processes end a moment after their last word.
  afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

  /** The target as the first run finds it: some of it there, and wrong. */
  const prepare = (): void => {
    for (const name of ["target", "state"]) rmSync(join(folder, name), { recursive: true, force: true });
    mkdirSync(join(root, "old"), { recursive: true, mode: 0o700 });
    chmodSync(root, 0o755);
    writeFileSync(join(root, "conf"), words("old", 100), { mode: 0o600 });
    writeFileSync(join(root, "gone"), "away with it");
    symlinkSync("nowhere", join(root, "link"));
  };

  const drafts = (): StepDraft[] =>
    Object.entries({
      folder: stepOf(directoryManaged, { path: join(root, "new"), mode: "0750" }),
      beneath: stepOf(directoryManaged, { path: join(root, "new/deep"), mode: "0755", owner: "nobody" }),
      repaired: stepOf(directoryManaged, { path: join(root, "old"), mode: "0755" }),
      conf: stepOf(fileManaged, { path: join(root, "conf"), content: words("new", 90), mode: "0644" }),
      kept: stepOf(fileManaged, { path: join(root, "new/kept"), content: words("kept", 2) }),
      owned: stepOf(fileManaged, { path: join(root, "new/deep/o"), content: "o\n", mode: "0700", owner: "nobody" }),
      link: stepOf(symlinkManaged, { path: join(root, "link"), target: "new/deep" }),
      fresh: stepOf(symlinkManaged, { path: join(root, "fresh"), target: "conf" }),
      gone: stepOf(fileAbsent, { path: join(root, "gone") }),
      last: stepOf(fileManaged, { path: join(root, "old/last"), content: "last\n", mode: "0640", group: "adm" }),
    }).map(([id, step]) => draftOf(id, step));

  /** Everything below the target: type, mode, owner, content. */
  const tree = (at = root): string[] =>
    readdirSync(at)
      .toSorted()
      .flatMap((name) => {
        const path = join(at, name);
        const { mode, uid, gid } = lstatSync(path);
        const line = `${path.slice(root.length)} ${mode.toString(8)} ${uid}:${gid}`;
        if (lstatSync(path).isSymbolicLink()) return [`${path.slice(root.length)} -> ${readlinkSync(path)}`];
        return lstatSync(path).isDirectory() ? [line, ...tree(path)] : [`${line} ${readFileSync(path, "utf8")}`];
      });

  const begin = (node: SteppedNode): { run: TestSession; over: Promise<unknown> } => {
    const run = sessionOn(node.state, { connect: node.connect, runId: "r1", retryDelays: [0, 0, 50, 100, 500] });
    return { run, over: run.session.perform([{ stage: "s", drafts: drafts() }]) };
  };

  /** How each step ended, with what it found and its diff. */
  const ends = (events: readonly RunEventBody[]): unknown[] =>
    events.flatMap((event) =>
      event.type === "step.finished" ? [[event.title, event.outcome, event.changes, event.diff, event.problem]] : [],
    );

  /** One run without a fault: what all others must come to. */
  const undisturbed = async (node: SteppedNode): Promise<{ events: unknown[]; tree: string[]; points: number }> => {
    const { run, over } = begin(node);
    await over;
    await run.session.finish("done");
    const seen = { events: ends(run.events), tree: tree(), points: node.count };
    prepare();
    return seen;
  };

  /** Neither file is ever anything but old or new. */
  const wholeFiles = (): void => {
    expect(readFileSync(join(root, "conf"), "utf8")).to.be.oneOf([words("old", 100), words("new", 90)]);
    for (const line of tree())
      if (line.startsWith("/new/kept ")) expect(line.endsWith(words("kept", 2))).to.equal(true);
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
      node.signal("SIGSTOP");
      await pause(100);
      node.signal("SIGCONT");
      node.release();
    },
  };

  for (const shell of shells)
    for (const [what, fault] of Object.entries(faults))
      it(`comes to the state and the events of an undisturbed run when ${what} at any point, in ${shell}`, async () => {
        const node = new SteppedNode(folder, shell);
        const expected = await undisturbed(node);
        expect(expected.points, JSON.stringify(expected.events)).to.be.greaterThan(25);
        // Every point in one shell and for the worst fault; elsewhere some of them, others in each.
        const whole = shell === "/bin/dash" && what.startsWith("killed");
        const stride = whole ? 1 : 9;
        const first = whole ? 1 : 1 + ((shells.indexOf(shell) * 2 + Object.keys(faults).indexOf(what)) % stride);
        for (let point = first; point <= expected.points; point += stride) {
          node.reset(point);
          const { run, over } = begin(node);
          // A few programs more or less start in each run; the last points may not come.
          if (!(await node.reached(over))) {
            await run.session.finish("done");
            break;
          }
          wholeFiles();
          await fault(node);
          await over;
          await run.session.finish("done");
          expect(tree(), `point ${point}`).to.deep.equal(expected.tree);
          expect(ends(run.events), `point ${point}`).to.deep.equal(expected.events);
          prepare();
        }
      });

  for (const shell of shells)
    it(`F-5 fails where the disk became full, leaves what was before it, and comes to the same end later, in ${shell}`, async () => {
      const node = new SteppedNode(folder, shell);
      const expected = await undisturbed(node);
      for (let point = 1 + shells.indexOf(shell); point <= expected.points; point += 6) {
        execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k,mode=755", "none", root]);
        try {
          mkdirSync(join(root, "old"), { mode: 0o700 });
          writeFileSync(join(root, "conf"), words("old", 100), { mode: 0o600 });
          writeFileSync(join(root, "gone"), "away with it");
          symlinkSync("nowhere", join(root, "link"));
          node.reset(point);
          const { run, over } = begin(node);
          await node.reached(over);
          spawnSync("/bin/sh", ["-c", `cat /dev/zero >${root}/fill 2>/dev/null`]);
          node.release();
          await over;
          await run.session.finish("done");
          const failed = run.outcomes().filter((one) => one.endsWith(" failed"));
          expect(failed.length, `${point} ${run.outcomes().join()}`).to.be.lessThan(2);
          wholeFiles();
          rmSync(join(root, "fill"));
          rmSync(node.state, { recursive: true });
          const again = begin(node);
          await again.over;
          await again.run.session.finish("done");
          expect(tree(), `point ${point}`).to.deep.equal(expected.tree);
        } finally {
          while (spawnSync("umount", [root], { stdio: "ignore" }).status !== 0) await pause(20);
          prepare();
        }
      }
    });
});
