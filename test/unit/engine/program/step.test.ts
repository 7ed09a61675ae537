import { expect } from "chai";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { blobName, blobOf } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { secret } from "#engine/step/secret.ts";
import { grantedFunction } from "#engine/step/fragments/granted.ts";
import { sh } from "#engine/step/sh.ts";
import { runStepOn, shells } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("step.sh", () => {
  const at = folderOfEachTest("step");

  for (const shell of shells) {
    describe(shell, () => {
      it("applies contents that the step asks for in portions of 64 MiB", async () => {
        const blobs = ["a", "b", "c", "d"].map((name) => blobOf(`the ${name}\n`));
        const [a, b, c, d] = blobs.map(blobName);
        const step: Step = {
          want: { last: "yes" },
          probe: sh`[ -e ${at("last")} ] && fact last yes || fact last no`,
          // The first two fit into 64 MiB; the third is larger by itself.
          asks: sh`echo asked >>${at("asks")}
echo ${a!} 30000000 for-a
echo ${b!} 30000000 for-b
echo ${c!} 80000000 for-c
echo ${d!} 1 for-d`,
          offers: blobs,
          apply: sh`while read -r name size word; do echo "$word $(cat "$K_RUN/blobs/$name")" >>${at("got")}; done <"$k_portion_file"
echo "more:$k_more" >>${at("got")}
[ -n "$k_more" ] || : >${at("last")}`,
        };
        const run = await runStepOn(shell, step);
        expect(run.outcome, JSON.stringify(run)).to.equal("changed");
        expect(readFileSync(at("got"), "utf8").split("\n").join(", ")).to.equal(
          "for-a the a, for-b the b, more:1, for-c the c, more:1, for-d the d, more:, ",
        );
        expect(readFileSync(at("asks"), "utf8")).to.equal("asked\n");
        expect((await runStepOn(shell, step)).outcome).to.equal("ok");
      });

      it("records owed reactions before the first portion is applied", async () => {
        const blobs = [blobOf("the a\n"), blobOf("the b\n")];
        const [a, b] = blobs.map(blobName);
        mkdirSync(at("state"));
        const step: Step = {
          want: { last: "yes" },
          probe: sh`[ -e ${at("last")} ] && fact last yes || fact last no`,
          asks: sh`echo ${a!} 80000000
echo ${b!} 1`,
          offers: blobs,
          apply: sh`[ -e "$K_STATE/owed/0123456789ab" ] || exit 1
[ -n "$k_more" ] || : >${at("last")}`,
        };
        const run = await runStepOn(shell, step, { owes: ["0123456789ab"], stateDir: at("state") });
        expect(run.outcome, JSON.stringify(run)).to.equal("changed");
      });

      it("fails when `asks` refuses, and does not run `asks` in a dry run", async () => {
        const step: Step = {
          want: { a: "1" },
          probe: sh`fact a 2`,
          asks: sh`refuse NIX_PATH_DIFFERS "it is not there"`,
          offers: [],
          apply: sh`echo applied`,
        };
        const run = await runStepOn(shell, step);
        expect(run).to.deep.include({ outcome: "failed", stdout: "" });
        expect(run.problem?.code).to.equal("NIX_PATH_DIFFERS");
        expect((await runStepOn(shell, step, { dryRun: true })).outcome).to.equal("would-change");
      });

      it("fails a step that does not converge", async () => {
        const run = await runStepOn(shell, { want: { a: "1" }, probe: sh`fact a 2`, apply: sh`true` });
        expect(run).to.include({ outcome: "failed", status: 15 });
      });

      it("passes values with line breaks and back slashes", async () => {
        const value = "a\\b\nc\\\\\n\nd'\"$x`";
        const run = await runStepOn(shell, { want: { a: value }, probe: sh`fact a ${value}` });
        expect([run.outcome, run.have]).to.deep.equal(["ok", { a: value }]);
      });

      it("changes nothing in a dry run, but runs the guard", async () => {
        const step = { want: { a: "1" }, probe: sh`fact a 2`, apply: sh`: >${at("x")}` };
        expect((await runStepOn(shell, step, { dryRun: true })).outcome).to.equal("would-change");
        const guarded = {
          ...step,
          guard: sh`${grantedFunction}
granted S1 || refuse DISK_HAS_DATA "disk S1 holds data
an ext4 file system"`,
        };
        expect((await runStepOn(shell, guarded, { dryRun: true })).problem).to.deep.equal({
          code: "DISK_HAS_DATA",
          message: "disk S1 holds data",
          detail: "an ext4 file system",
        });
        expect((await runStepOn(shell, guarded, { dryRun: true, granted: ["S0", "S1"] })).outcome).to.equal(
          "would-change",
        );
        expect(readdirSync(at())).to.deep.equal([]);
      });

      it("reports the exit of apply and of a probe as a failed step", async () => {
        const broken = { want: { a: "1" }, probe: sh`fact a 2`, apply: sh`echo broken >&2; exit 3` };
        const run = await runStepOn(shell, broken);
        expect(run).to.include({ outcome: "failed", status: 13, stderr: "broken\n" });
        expect((await runStepOn(shell, { want: { a: "1" }, probe: sh`exit 1` })).status).to.equal(16);
      });

      it("reacts when a watched step changed", async () => {
        const file = at("log");
        const step = {
          want: { a: "1" },
          probe: sh`fact a 1`,
          apply: sh`exit 1`,
          react: sh`[ "$(had a)" = 1 ] && echo reacted >>${file}`,
        };
        expect((await runStepOn(shell, step)).outcome).to.equal("ok");
        expect((await runStepOn(shell, step, { due: true })).outcome).to.equal("changed");
        expect(readFileSync(file, "utf8")).to.equal("reacted\n");
      });

      it("retries a probe until it finds the desired state", async () => {
        const file = at("n");
        const probe = sh`echo x >>${file}; fact lines "$(grep -c x ${file})"`;
        const run = await runStepOn(shell, { want: { lines: "3" }, probe, retry: { attempts: 5, interval: 0 } });
        expect(run.outcome).to.equal("ok");
        expect(
          (await runStepOn(shell, { want: { lines: "9" }, probe, retry: { attempts: 2, interval: 0 } })).status,
        ).to.equal(17);
      });

      it("honours creates, unless and onlyIf", async () => {
        const step = { want: {}, probe: sh``, apply: sh`echo ran; : >${at("made")}`, always: true } as const;
        for (const [plan, outcome] of [
          [{ creates: at("made") }, "changed"],
          [{ creates: at("made") }, "ok"],
          [{ unless: "true" }, "ok"],
          [{ unless: "false" }, "failed"],
          [{ onlyIf: "false" }, "skipped"],
          [{}, "changed"],
        ] as const)
          expect((await runStepOn(shell, step, { plan })).outcome, JSON.stringify(plan)).to.equal(outcome);
      });

      it("runs a condition in a subshell, and fails on one with a syntax error", async () => {
        const step = { want: {}, probe: sh``, apply: sh`pwd; echo "${"$a"}$(umask)"`, always: true } as const;
        const onlyIf = "cd /; a=b; umask 0; false ||\nexit 0 # a comment";
        const run = await runStepOn(shell, step, { plan: { onlyIf } });
        expect([run.outcome, run.stdout.split("\n")[1]]).to.deep.equal(["changed", "$a0022"]);
        // bash takes the text for a condition that does not hold.
        if (shell === "bash") return;
        for (const plan of [{ unless: 'echo "' }, { onlyIf: "if true" }]) {
          const { outcome, stderr, stdout } = await runStepOn(shell, step, { plan });
          expect([outcome, stdout]).to.deep.equal(["failed", ""]);
          expect(stderr).to.match(/syntax error|Syntax error|closing quote/);
        }
      });

      it("passes secrets to the step outside its text (S-7)", async () => {
        const password = secret("it's $ecret\nwith lines");
        const file = at("out");
        const apply = sh`printf %s ${password} >${file}`;
        expect(String(apply)).to.not.include("ecret");
        const run = await runStepOn(shell, {
          want: { a: "1" },
          probe: sh`[ -s ${file} ] && fact a 1 || fact a 0`,
          apply,
        });
        expect(run.outcome).to.equal("changed");
        expect(readFileSync(file, "utf8")).to.equal(password.reveal());
      });

      it("runs as another user, who cannot read the run's folder", async () => {
        const run = await runStepOn(
          shell,
          { want: { who: "nobody" }, probe: sh`fact who "$(id -un)"; ls "$K_RUN" 2>/dev/null && echo leak || :` },
          { plan: { runAs: "nobody" } },
        );
        expect(run).to.include({ outcome: "ok", stdout: "" });
      });

      it("gives a step of another user a new private folder each time, and removes it", async () => {
        const folders = ["", ""];
        for (const at of folders.keys()) {
          const probe = sh`fact folder "$K_TMP"; set -- $(ls -ld "$K_TMP"); fact mode "$1"; fact owner "$3"`;
          const want = { mode: "drwx------", owner: "nobody" };
          const run = await runStepOn(shell, { want, probe }, { plan: { runAs: "nobody" } });
          expect(run.outcome, run.stderr).to.equal("ok");
          folders[at] = run.have["folder"] as string;
          expect(existsSync(folders[at])).to.equal(false);
        }
        expect(folders[0]).to.not.equal(folders[1]);
      });

      it("refuses to write into a folder that other users can write to (S-6)", async () => {
        mkdirSync(at("open"));
        chmodSync(at("open"), 0o777);
        const file = at("open", "f");
        const run = await runStepOn(shell, {
          want: { a: "1" },
          probe: sh`fact a 0`,
          apply: sh`put_file /etc/hostname ${file} 0644 root root`,
        });
        expect(run.problem).to.deep.include({
          code: "FILE_PARENT_UNSAFE",
          detail: `${at("open")} is writable for others`,
        });
        expect(readdirSync(at("open"))).to.deep.equal([]);
      });

      it("keeps owner and mode of a file in a sticky folder unless another user owns the file (S-6)", async () => {
        mkdirSync(at("sticky"));
        chmodSync(at("sticky"), 0o1777);
        const file = at("sticky", "f");
        const afterPut = async (present: number, asOwner: string, runAs?: string): Promise<string> => {
          writeFileSync(file, "");
          chownSync(file, present, present);
          chmodSync(file, 0o620);
          const apply = sh`put_file /etc/hostname ${file} - ${asOwner} -`;
          const step = { want: { mode: "620" }, probe: sh`fact mode 0`, apply };
          await runStepOn(shell, step, { plan: runAs === undefined ? {} : { runAs } });
          const { uid, mode } = statSync(file);
          rmSync(file);
          return `${uid} ${(mode & 0o7777).toString(8)}`;
        };
        const nobody = 65534;
        expect(await afterPut(0, "-")).to.equal("0 620");
        expect(await afterPut(nobody, "-", "nobody")).to.equal(`${nobody} 620`);
        expect(await afterPut(nobody, "nobody")).to.equal(`${nobody} 620`);
        expect(await afterPut(nobody, `${nobody}`)).to.equal(`${nobody} 620`);
        expect(await afterPut(nobody, "-")).to.equal("0 644");
        expect(await afterPut(nobody, "root")).to.equal("0 644");
      });
    });
  }
});
