import { spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { framesInOrder, lookAt, lookText } from "#engine/program/look.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import { blobOf } from "#engine/step/blob.ts";
import { Secret } from "#engine/step/secret.ts";
import type { Step } from "#engine/step/define.ts";
import { stepOfData } from "#engine/step/fragments/files.ts";
import { rawSh, sh } from "#engine/step/sh.ts";
import { runOnNode } from "#support/fake-session.ts";
import { plannedStep, shells } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const probing = (probe = sh`fact x yes`): Step => ({ want: { x: "yes" }, probe, apply: sh`:` });
const always: Step = { want: {}, probe: sh``, apply: sh`:`, always: true };
const lookOf = (step: Step, keys: Partial<PlannedStep> = {}) => lookAt([{ key: "k1", plan: plannedStep(step, keys) }]);

describe("a look without a runner", () => {
  it("accepts exactly the steps whose probe or condition needs no runner", () => {
    const cases: readonly (readonly [boolean, Step, Partial<PlannedStep>?])[] = [
      [true, probing()],
      [true, always, { creates: "/etc/x" }],
      [true, always, { unless: "true" }],
      [true, always, { onlyIf: "true" }],
      [true, always, { onChanges: ["test/other"] }],
      [true, always, { onFailure: ["test/other"] }],
      [false, always],
      [false, probing(), { runAs: "ops" }],
      [false, probing(sh`cat <${blobOf("content")}`)],
      [false, probing(sh`echo ${new Secret("secret")}`)],
      [true, probing(sh`[ -e "$K_TMP/made" ] && rm -f "$K_TMP/made"`)],
      [false, probing(sh`: >"$K_TMP/x"`)],
      [false, probing(sh`safe_parents /etc/x root`)],
      [false, always, { unless: '[ -e "$K_RUN/x" ]' }],
    ];
    expect(cases.map(([, step, keys]) => lookOf(step, keys) !== undefined)).to.deep.equal(cases.map(([is]) => is));
  });

  it("has a hash that depends on content, want, condition and milestone, but not on fresh values", () => {
    const file = (content: string): Step =>
      stepOfData({ kind: "file", path: "/etc/x", blob: blobOf(content), mode: "0644", makeDirs: false });
    const hashes = [
      lookOf(file("a")),
      lookOf(file("b")),
      lookOf(probing()),
      lookOf({ ...probing(), want: { x: "no" } }),
      lookOf(always, { unless: "true" }),
      lookOf(always, { unless: "false" }),
      lookOf(always, { unless: "false", milestone: "m" }),
    ].map((look) => look?.hash);
    expect(new Set(hashes).size).to.equal(hashes.length);
    expect(lookOf(file("a"))?.hash).to.equal(hashes[0]);
    const signing = (challenge: string): Step => ({ ...probing(sh`fact proof ${challenge}`), fresh: [challenge] });
    expect(lookOf(signing("one"))?.hash).to.equal(lookOf(signing("two"))?.hash);
  });

  it("sends common parts of probes once, and no part that the shell already has", () => {
    const common = sh`common() {
  ${"x".repeat(9)} ${rawSh(`: ${"y".repeat(600)}`)}
}`;
    const probes = ["a", "b"].map((word) => probing(sh`${common}\n: ${rawSh(word)}`));
    const look = lookAt(probes.map((step, index) => ({ key: `k${index}`, plan: plannedStep(step) })));
    expect(look?.steps.match(/y{600}/g)?.length).to.equal(1);
    if (!look) return;
    const shell = new Set<string>();
    const [first = "", second = ""] = [0, 1].map(() => lookText(runOnNode, look, { now: 0, shell }));
    const functions = ["k_hello()", "k_prove()", "fact()"];
    expect(functions.map((name) => [first.includes(name), second.includes(name)])).to.deep.equal(
      functions.map(() => [true, false]),
    );
  });

  it("frames the results of steps in order like a runner's", () => {
    const steps = [
      { key: "a", plan: plannedStep(probing(), { milestone: "ready" }) },
      { key: "b", plan: plannedStep(always, { onlyIf: "false" }) },
      { key: "c", plan: plannedStep(always, { onChanges: ["x"], milestone: "never" }) },
      { key: "d", plan: plannedStep(always, { onFailure: ["x"] }) },
    ];
    expect(framesInOrder(steps, [], new Set(["b"])).map(({ type, rest }) => `${type} ${rest}`)).to.deep.equal([
      "quick a",
      "milestone a ready",
      "end b skipped 12",
      "end c skipped 0 nothing it watches changed",
      "end d skipped 0 nothing failed",
    ]);
  });

  for (const shell of [...shells, "mksh"])
    describe(`on ${shell}`, () => {
      const at = folderOfEachTest("look");
      /** The last frame that a look at these steps prints. */
      const look = (steps: readonly (readonly [Step, Partial<PlannedStep>?])[]): string => {
        const plans = steps.map(([step, keys], index) => ({ key: `k${index}`, plan: plannedStep(step, keys) }));
        const found = lookAt(plans);
        if (!found) throw new Error("no look");
        const [program = "", ...words] = shell.split(" ");
        const run = { ...runOnNode, stateDir: at("state") };
        const input = lookText(run, found, { now: 0, shell: new Set() }).replaceAll("/bin/sh -c", `${shell} -c`);
        const ended = spawnSync(program, [...words, "-c", 'IFS= read -r k; eval "$k"'], { input, encoding: "utf8" });
        expect(ended.stderr).to.equal("");
        return ended.stdout.trimEnd().split("\n").at(-1)?.replace(`${run.nonce} `, "") ?? "";
      };
      beforeEach(() => mkdirSync(at("state/lock"), { recursive: true, mode: 0o700 }));

      it("finds files, folders, links and absent paths in order, or reports a difference", () => {
        const file = (name: string, keys: Partial<{ mode: string; owner: string }> = {}): Step =>
          stepOfData({
            kind: "file",
            path: at(name),
            blob: blobOf("content\n"),
            mode: "0644",
            makeDirs: false,
            ...keys,
          });
        writeFileSync(at("file"), "content\n", { mode: 0o644 });
        symlinkSync("file", at("link"));
        mkdirSync(at("folder"), { mode: 0o755 });
        const link = (target: string): Step =>
          stepOfData({ kind: "symlink", path: at("link"), target, force: false, makeDirs: false });
        const folder: Step = stepOfData({ kind: "directory", path: at("folder"), makeDirs: false });
        const absent = (name: string): Step => stepOfData({ kind: "absent", path: at(name), recurse: false });
        const inOrder = [
          [file("file")],
          [file("file", { owner: "root" })],
          [link("file")],
          [folder],
          [absent("none")],
        ] as const;
        expect(look(inOrder)).to.equal("look in-order");
        expect(look([[file("none")]])).to.equal("look differs");
        expect(look([[file("file", { mode: "0600" })], ...inOrder])).to.equal("look differs");
        expect(look([[file("file", { owner: "daemon" })], ...inOrder])).to.equal("look differs");
        expect(look([...inOrder, [link("other")]])).to.equal("look differs");
        expect(look([...inOrder, [absent("file")]])).to.equal("look differs");
        writeFileSync(at("file"), "other\n");
        expect(look(inOrder)).to.equal("look differs");
      });

      it("runs several probes with a common part", () => {
        const common = rawSh(`tell() {\n: ${"'y' ".repeat(200)}\nfact x "$1"\n}`);
        const sharing = ["yes", "yes it's"].map((x) => ({
          want: { x },
          probe: sh`${common}
tell ${x}; : ${rawSh(x.length.toString())}`,
          apply: sh`:`,
        }));
        expect(look(sharing.map((step) => [step]))).to.equal("look in-order");
      });

      it("runs probes and conditions in the environment of steps", () => {
        const probe = sh`case $HOME:$USER:$LANG:$K_NODE:$(umask) in ${`/root:root:C.UTF-8:${runOnNode.node}:`}*022) fact x yes ;; esac`;
        expect(look([[probing(probe)], [always, { unless: "exit 0" }], [always, { onlyIf: "exit 1" }]])).to.equal(
          "look in-order k2",
        );
        expect(look([[probing(sh`fact x no`)]])).to.equal("look differs");
        expect(look([[probing(sh`fact x yes; exit 1`)]])).to.equal("look differs");
        expect(look([[probing(sh`refuse FILE_INVALID no`)]])).to.equal("look differs");
        expect(look([[always, { unless: "exit 1" }]])).to.equal("look differs");
        expect(look([[always, { onlyIf: "exit 0" }]])).to.equal("look differs");
        const tool = { command: "no-such-program", package: "none" };
        expect(look([[{ ...probing(), tools: [tool] }]])).to.equal("look differs");
      });
    });
});
