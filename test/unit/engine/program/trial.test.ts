import { spawnSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { compileStep } from "#engine/program/compile-step.ts";
import { segmentText, type Foresight } from "#engine/program/segment.ts";
import { shippedText } from "#engine/program/texts.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import { quote } from "#base/quote.ts";
import { sh } from "#engine/step/sh.ts";
import { draftOf } from "#support/sessions.ts";
import { shells } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const onTrial = { want: {}, always: true, probe: sh`:`, keep: sh`:`, apply: sh`:` } as const;

/** A segment with a step on trial for each of these step keys. */
function segmentOf(plans: readonly Partial<PlannedStep>[], foresight?: Foresight): string {
  const steps = plans.map((extra, index) => {
    const rendered = draftOf(`s${index}`, onTrial, extra).render({ steps: new Map() });
    if (rendered.kind !== "step") throw new Error("not a step");
    const { plan } = rendered;
    return { plan, compiled: compileStep(plan, { owes: [], randomName: () => "x" }) };
  });
  return segmentText({ steps, facts: false, ...(foresight && { foresight }) });
}

/** The functions for steps on trial, as a segment sets them. */
const library = /^K_FILES='[^]*?(?=\nrk_)/m.exec(segmentOf([{ risk: "connectivity" }]))?.[0] ?? "";

describe("the backup of a change on trial", () => {
  const at = folderOfEachTest("keep");
  beforeEach(() => ["etc", "state"].forEach((name) => mkdirSync(at(name))));

  for (const shell of [...shells, "mksh"])
    describe(`on ${shell}`, () => {
      const [program = "", ...before] = shell.split(" ");
      const run = (...args: readonly string[]) =>
        spawnSync(program, [...before, ...args], { encoding: "utf8", timeout: 10_000 });
      /** Runs a step that makes backups by `keep` and then runs `change`; its errors and its refusal. */
      const step = (keep: string, change = ":", id = "r1"): string => {
        const found = at("found");
        const lines = [
          shippedText("step-functions"),
          `${library}\neval "$K_FILES"`,
          `K_STATE=${quote(at("state"))} K_RUN=$K_STATE/runs/${id} k_nonce=n k_key=s`,
          `(trial_open 3600 && ${keep} && { ${change}; }) 3>${quote(found)} 5>/dev/null`,
        ];
        const ended = run("-c", lines.join("\n"));
        return `${ended.stderr}${readFileSync(found, "utf8")}`;
      };
      const trial = (...names: readonly string[]): string => at("state/trial", ...names);
      /** Backs a file up and then changes it. */
      const change = (file: string, how = `: >${quote(file)}`, id?: string) =>
        expect(step(`keep_path ${quote(file)}`, how, id)).to.equal("");
      const goBack = (): void => void run(trial("guard"), "now");
      const kept = (): string[] => readdirSync(trial()).filter((name) => /^\d/.test(name));

      it("restores files, links and folder modes, and removes new files", () => {
        const of = (name: string): string => at("etc", name);
        writeFileSync(of("file"), "old", { mode: 0o640 });
        symlinkSync("there", of("link"));
        mkdirSync(of("folder"), { mode: 0o750 });
        const names = ["file", "link", "folder", "new", "none/deep"].map(of);
        const keep = names.map((name) => `keep_path ${quote(name)}`).join(" && ");
        const changes = `cd ${quote(at("etc"))}; echo new >file; chmod 600 file; ln -sfn elsewhere link; chmod 700 folder; : >new; mkdir none; : >none/deep`;
        expect(step(keep, changes)).to.equal("");
        // A second backup, of the file as the step left it.
        change(of("file"), `echo newer >${quote(of("file"))}`);
        goBack();
        expect([readFileSync(of("file"), "utf8"), lstatSync(of("file")).mode & 0o777]).to.deep.equal(["old", 0o640]);
        expect([readlinkSync(of("link")), lstatSync(of("folder")).mode & 0o777]).to.deep.equal(["there", 0o750]);
        expect(readdirSync(at("etc")).toSorted()).to.deep.equal(["file", "folder", "link", "none"]);
        expect([readdirSync(of("none")), [existsSync(trial("over")), kept()]]).to.deep.equal([[], [true, []]]);
      });

      it("is restored before the revert commands, which run in order with their output kept", () => {
        const file = at("etc", "file");
        const log = at("log");
        writeFileSync(file, "old\n");
        const keep = `on_revert ${quote(`cat ${file} >>${log}`)} && keep_path ${quote(file)} && on_revert ${quote(`echo "it's second" >>${log}; exit 3`)}`;
        expect(step(keep, `echo new >${quote(file)}`)).to.equal("");
        goBack();
        expect(readFileSync(log, "utf8")).to.equal("old\nit's second\n");
        expect(readFileSync(trial("said"), "utf8")).to.equal("a command to go back with ended with status 3\n");
      });

      it("runs a revert command in the step's environment", () => {
        const log = at("log");
        expect(step(`k_env="export A='it is'" && on_revert ${quote(`echo "$A" >${log}`)}`)).to.equal("");
        goBack();
        expect(readFileSync(log, "utf8")).to.equal("it is\n");
      });

      it("restores the way in first, and enables a unit only where that changed", () => {
        const log = at("log");
        const bin = at("bin");
        mkdirSync(bin);
        writeFileSync(
          join(bin, "systemctl"),
          `#!/bin/sh\necho "$@" >>${log}\ncase $1 in is-active) echo active ;; is-enabled) cat ${bin}/$2 ;; esac\n`,
          { mode: 0o755 },
        );
        const enabled = (now: string): void => {
          for (const unit of ["ssh", "log"]) writeFileSync(join(bin, unit), "enabled");
          writeFileSync(join(bin, "log"), now);
        };
        enabled("enabled");
        const file = at("etc", "sshd_config");
        const keep = `PATH=${bin}:$PATH && keep_unit log keep && keep_path ${quote(file)} && keep_unit ssh reload-or-restart`;
        expect(step(keep, `: >${quote(file)}`)).to.equal("");
        enabled("disabled");
        const guard = trial("guard");
        writeFileSync(guard, readFileSync(guard, "utf8").replace("PATH=", `PATH=${bin}:`));
        rmSync(log);
        goBack();
        expect(readFileSync(log, "utf8").split("\n").slice(0, -1)).to.deep.equal(
          "-q reset-failed ssh, reload-or-restart ssh, is-enabled log, -q enable log, is-enabled ssh".split(", "),
        );
        expect(existsSync(file)).to.equal(false);
      });

      it("is not restored after a confirmation", () => {
        const file = at("etc", "file");
        change(file);
        symlinkSync("confirmed", trial("decision"));
        goBack();
        expect(existsSync(file)).to.equal(true);
      });

      for (const decision of ["confirmed", "reverted"])
        for (const order of ["", "-r"])
          it(`is not restored by a guard that wakes while a ${decision} trial is removed (sort ${order})`, () => {
            const file = at("etc", "file");
            writeFileSync(file, "old");
            change(file, `echo new >${quote(file)}`);
            // The decision comes first: the step's own guard, which still waits, would decide by the passed deadline.
            symlinkSync(decision, trial("decision"));
            writeFileSync(trial("deadline"), "0\n");
            if (decision === "reverted") for (const name of ["going-back", "over"]) mkdirSync(trial(name));
            // One name after another; the guard wakes after each, and once more when all are gone.
            const watched = `wake() { cd "$k_trial" 2>/dev/null && ${shell} -c "$guard" "$k_trial/guard" watch; cd /; }
rm() {
  for name; do
    case $name in -*) continue ;; esac
    if [ -d "$name" ]; then
      for entry in $(ls "$name" | sort ${order}); do command rm -rf "$name/$entry"; wake; done
      rmdir "$name" || return 1
    else command rm -f "$name"; wake; fi
  done
}
k_trial=${quote(trial())} guard=$(cat "$k_trial/guard")
k_remove_trial`;
            run("-c", [shippedText("trial-runner"), watched].join("\n"));
            expect([existsSync(trial()), readFileSync(file, "utf8")]).to.deep.equal([false, "new\n"]);
          });

      it("of another run is restored and removed at once", () => {
        const [theirs, ours] = ["theirs", "ours"].map((name) => at("etc", name));
        for (const file of [theirs, ours]) writeFileSync(file!, "old");
        expect(step(`keep_path ${quote(theirs!)}`, `echo new >${quote(theirs!)}`)).to.equal("");
        expect(step(`keep_path ${quote(ours!)}`, `echo new >${quote(ours!)}`, "r2")).to.equal("");
        expect([theirs, ours].map((file) => readFileSync(file!, "utf8"))).to.deep.equal(["old", "new\n"]);
        expect(readFileSync(trial("run"), "utf8")).to.equal("r2\n");
        expect([existsSync(trial("over")), kept()]).to.deep.equal([false, ["1001.kept", "1001.path"]]);
      });

      it("is refused in a folder of another user", () => {
        const folder = at("etc", "theirs");
        mkdirSync(folder);
        expect(run("-c", `chown 1234 ${quote(folder)}`).status).to.equal(0);
        expect(step(`keep_path ${quote(join(folder, "file"))}`, `: >${quote(join(folder, "file"))}`)).to.contain(
          "R FILE_PARENT_UNSAFE",
        );
        expect(existsSync(join(folder, "file"))).to.equal(false);
      });
    });

  it("spans adjacent steps on trial: the last one waits, as long as the longest `confirm`", () => {
    const plans = [
      {},
      { risk: "connectivity" },
      { risk: "connectivity", confirm: 90 },
      { risk: "connectivity" },
      {},
      { risk: "connectivity", confirm: 5 },
    ] as const;
    const text = segmentOf(plans);
    expect(text.match(/^rk_\w+=.*$/gm)?.map((line) => line.replace(/.*=/, ""))).to.deep.equal(["-", "-", "90", "5"]);
    expect(text).to.contain("\nk_go\nk_revert_unconfirmed\n");
    expect(segmentOf(plans, { ended: new Map(), dependencies: new Map() })).to.not.contain("k_revert_unconfirmed");
    expect(segmentOf(plans.slice(0, 1))).to.not.contain("k_revert_unconfirmed");
  });
});
