import { spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { runtimeUpdated } from "#engine/modules/runtime-updated.ts";
import { emptyJournal, type Journal } from "#updater/journal.ts";
import { nodePorts } from "#updater/node-ports.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import { ownershipOf } from "#support/ownership.ts";
import { shellsOf } from "#support/shells.ts";
import { contextOf, runStepOn, stepOf, type StepRun } from "#support/steps.ts";
import { bundleOf, runtimePath, statementOf } from "#support/update-world.ts";
import type { UpdaterBehaviour } from "#support/updater-process.ts";

const bytes = "a bundle";
const sha256 = createHash("sha256").update(bytes).digest("hex");
const newBundle = bundleOf("0.2.0", { sha256, size: bytes.length });

/** The result of update.sign; the number at the end of the owner's name decides its epoch. */
function signedOf({ update = "u1", owner = "bastion-1" }: { readonly update?: string; readonly owner?: string } = {}) {
  const epoch = 10 * Number(/\d+$/.exec(owner)?.[0]);
  const sign = (said: object) => ({ statement: JSON.stringify(said), signature: "", signer: "" });
  const ownership = sign(ownershipOf({ name: update, owner, epoch }));
  const signed = sign(statementOf("0.2.0", {}, { name: update, bundle: newBundle }));
  return { epoch, order: JSON.stringify({ signed, ownership }).slice(1, -1) };
}

describe("runtime.updated with a stand-in of the updater", () => {
  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let temp: TempDir;
      let updater: ChildProcess | undefined;
      beforeEach(async () => {
        temp = await makeTempDir("updated");
      });
      afterEach(async () => {
        updater?.kill("SIGKILL");
        updater = undefined;
        await temp.remove();
      });

      const folder = (): string => join(temp.path, "updates");
      const journal = (): Journal => JSON.parse(readFileSync(join(folder(), "journal.json"), "utf8")) as Journal;
      /** Writes the journal in the updater's order of keys. */
      const keep = ({ fence, report, ...rest }: { fence: object; report: object; doing: object }): void => {
        const { brings, ...empty } = emptyJournal();
        writeFileSync(join(folder(), "journal.json"), JSON.stringify({ ...empty, fence, report, brings, ...rest }));
      };
      const start = async (behaviour: UpdaterBehaviour = {}): Promise<void> => {
        const program = fileURLToPath(new URL("../../support/updater-process.ts", import.meta.url));
        const profile = join(temp.path, "kcore");
        updater = spawn(process.execPath, [program, folder(), profile, runtimePath("0.1.0")], { stdio: "inherit" });
        while (!existsSync(`${profile}.path`)) await sleep(20);
        writeFileSync(join(folder(), "behaviour.json"), JSON.stringify(behaviour));
        writeFileSync(`${profile}-updater.target`, "");
      };
      const run = (to: string, fields: object = {}, options: object = {}): Promise<StepRun> => {
        const bundle = join(temp.path, "bundle");
        writeFileSync(bundle, bytes);
        const args = {
          to,
          update: "u1",
          owner: "bastion-1",
          target: runtimePath("0.2.0"),
          signed: signedOf(fields),
          bundle: { file: bundle, sha256, size: bytes.length },
          profile: join(temp.path, "kcore"),
          limit: 20,
          ...fields,
        };
        const step = stepOf(runtimeUpdated, args, contextOf({ stateDir: temp.path }));
        return runStepOn(shell, step, { stateDir: temp.path, ...options });
      };
      const changed = async (to: string, fields: object = {}): Promise<StepRun> => {
        const ran = await run(to, fields);
        expect(ran.outcome, JSON.stringify(ran)).to.equal("changed");
        return ran;
      };

      it("updates a node and rolls it back", async () => {
        await start();
        expect((await run("fenced", {}, { dryRun: true })).outcome).to.equal("would-change");
        await changed("fenced");
        await changed("prepared");
        expect(existsSync(join(folder(), "bundles", sha256))).to.equal(false);
        expect((await changed("activated")).have["runtime"]).to.equal(runtimePath("0.1.0"));
        expect((await changed("held")).have["update"]).to.equal("waits");
        for (const to of ["fenced", "prepared", "activated", "held"])
          expect((await run(to)).outcome, to).to.equal("ok");
        // Another run has nothing to do, and takes back only its own work.
        for (const to of ["fenced", "prepared", "activated", "held", "rolled_back"])
          expect((await run(to, { owner: "bastion-2", own: true })).outcome, to).to.equal("ok");
        expect((await changed("rolled_back", { owner: "bastion-2" })).now["runtime"]).to.equal(runtimePath("0.1.0"));
        expect((await run("rolled_back", { owner: "bastion-2" })).outcome).to.equal("ok");
      });

      it("rolls back after another update came, which had changed nothing", async () => {
        await start();
        for (const to of ["fenced", "prepared", "activated", "held"]) await changed(to);
        const other = { update: "u2", owner: "bastion-2", target: runtimePath("0.3.0") };
        await changed("fenced", other);
        expect((await run("rolled_back", { ...other, target: runtimePath("0.2.0") })).notes).to.include(
          "the node has nothing to go back to from this update",
        );
        expect((await changed("rolled_back")).now["runtime"]).to.equal(runtimePath("0.1.0"));
      });

      it("compares a NixOS system with the flake it was built of, and counts a tried system only on request", async () => {
        const flake = "git+https://example.org/systems?ref=main&rev=0123456789abcdef0123456789abcdef01234567";
        const [system, profile] = [join(temp.path, "current-system"), join(temp.path, "kcore")];
        const built = join(temp.path, "built");
        mkdirSync(folder(), { recursive: true });
        writeFileSync(`${profile}-updater`, "");
        symlinkSync(built, system);
        mkdirSync(built);
        const runs = async (fields: object = {}): Promise<unknown> => {
          const of = { target: flake, bundle: undefined, system, ...fields };
          return (await run("activated", of, { dryRun: true })).have["runtime"];
        };
        expect(await runs()).to.equal(built);
        const known = [
          { path: built, id: "github:a/b" },
          { path: built, id: flake },
        ];
        writeFileSync(join(folder(), "systems.json"), `${JSON.stringify(known)}\n`);
        // No profile of this machine keeps the runtime.
        expect(await runs()).to.equal("none");
        expect(await runs({ tried: true })).to.equal(flake);
      });

      it("counts a boot that the updater is about to make, and not one that it has made", async () => {
        mkdirSync(folder(), { recursive: true });
        const fence = { name: "u1", epoch: 1, owner: "bastion-1", generation: 1, seq: 3 };
        const bootId = nodePorts(AbortSignal.timeout(60_000), () => Promise.resolve()).bootId;
        const at = async (id: string) => {
          const doing = { step: "activate", statement: { spec: {} }, stage: "begun", boots: true, hasBooted: false };
          const time = { bootId: id, since: 1, spent: 0 };
          const report = { epoch: 1, fence, state: "rebooting", present: { id: "/nix/store/x", version: "1" }, at: 1 };
          keep({ fence, report, doing: { ...doing, time } });
          writeFileSync(join(folder(), "ordered"), "bastion-1 activate 3\n");
          const outcomes: string[] = [];
          for (const to of ["activated", "booted", "held"])
            outcomes.push((await run(to, {}, { dryRun: true })).outcome);
          return outcomes;
        };
        expect(await at(await bootId())).to.deep.equal(["ok", "would-change", "ok"]);
        expect(await at("another")).to.deep.equal(["would-change", "ok", "would-change"]);
      });

      it("does not count what another owner started and has not held", async () => {
        await start();
        for (const to of ["fenced", "prepared", "activated", "held"]) await changed(to);
        updater?.kill("SIGKILL");
        const fence = { ...journal().fence, epoch: 2, owner: "c1" };
        const doing = { step: "activate", statement: { spec: {} }, stage: "begun", boots: false, hasBooted: false };
        keep({ ...journal(), fence, report: { ...journal().report, fence, state: "activating" }, doing });
        for (const to of ["fenced", "activated"]) {
          const { outcome, have } = await run(to, {}, { dryRun: true });
          expect([outcome, have["runtime"]], to).to.deep.equal(["would-change", "under way"]);
        }
      });

      it("reports the updater's failure, and names a failed gate", async () => {
        await start({ hold: { kind: "gate", message: 'web: “http://x” answers "500"\nnot 200' } });
        for (const to of ["fenced", "prepared", "activated"]) await changed(to);
        const { problem } = await run("held");
        expect([problem?.code, problem?.message, problem?.detail]).to.deep.equal([
          "UPDATE_GATE_FAILED",
          'web: “http://x” answers "500"',
          "not 200",
        ]);
        expect((await run("activated", {}, { dryRun: true })).have["runtime"]).to.equal(runtimePath("0.1.0"));
      });

      it("takes over with the signed epoch, and continues after the last order of the update", async () => {
        await start();
        const fence = '"fence":{"name":"u1","epoch":10,"owner":"c1","generation":3,"seq":9}';
        const { order } = signedOf({ owner: "c1" });
        // The updater must not read a half-written order.
        writeFileSync(join(folder(), "inbox.new"), `{${fence},"step":"fence",${order}}`);
        renameSync(join(folder(), "inbox.new"), join(folder(), "inbox.json"));
        while (!existsSync(join(folder(), "journal.json"))) await sleep(20);
        await changed("fenced", { owner: "bastion-2" });
        expect(journal().report?.fence).to.deep.equal({
          name: "u1",
          epoch: 20,
          owner: "bastion-2",
          generation: 3,
          seq: 10,
        });
        // The node knows the last order of an update that was here before another one.
        await changed("fenced", { update: "u2" });
        await changed("fenced", { owner: "bastion-3" });
        expect(journal().report?.fence).to.deep.equal({
          name: "u1",
          epoch: 30,
          owner: "bastion-3",
          generation: 3,
          seq: 11,
        });
      });
    });
});
