import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { expect } from "chai";
import { followerText, runnerCommand, type RunVariables } from "#engine/program/bootstrap.ts";
import { hangLimit } from "#support/limit.ts";
import { shellsOf } from "#support/shells.ts";
import { shells } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const entry = 'IFS= read -r k; eval "$k"';

describe("a program that arrives incomplete", () => {
  const inFolder = folderOfEachTest("bootstrap");
  let run: RunVariables;
  beforeEach(() => {
    run = {
      nonce: "0123456789abcdef0123456789abcdef",
      stateDir: inFolder("state"),
      runId: "r",
      attempt: 1,
      who: "me@here",
      node: "n1",
      dryRun: false,
      grants: [],
      login: "root",
    };
  });

  /** The node's answer to these bytes. */
  function answerOf(shell: string, input: Uint8Array): string {
    const [program = "", ...words] = shell.split(" ");
    return spawnSync(program, [...words, "-c", entry], { input, encoding: "utf8", timeout: hangLimit }).stdout;
  }
  const follower = (): Buffer => Buffer.from(followerText(run, { offset: 0, seen: "" }));
  const without = (bytes: Buffer, at: number, length: number): Buffer =>
    Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
  /** The end of a line in the first half of the text, where a cut leaves valid sh. */
  const lineEnd = (bytes: Buffer): number => bytes.indexOf("\n", bytes.length / 3) + 1;

  for (const shell of shellsOf(import.meta.filename, [...shells, "mksh"]))
    describe(shell, () => {
      it("F-12 starts the follower when the text is complete", () => {
        expect(answerOf(shell, follower())).to.match(/^\w{32} hello 1 \d+ \S+ \S+ \d+\n\w{32} runner new 0\n/);
      });

      it("F-12 runs nothing of a follower that is cut short", () => {
        const bytes = follower();
        for (const end of [lineEnd(bytes), bytes.length - 34, bytes.length - 2])
          expect(answerOf(shell, bytes.subarray(0, end)), `${end} bytes`).to.equal(`${run.nonce} fatal BOOTSTRAP\n`);
        expect(readdirSync(inFolder())).to.deep.equal([]);
      });

      it("F-12 runs nothing of a follower with missing bytes in the middle", () => {
        const bytes = follower();
        const rest = Buffer.concat([bytes, Buffer.from(runnerCommand(run, { segment: 1, changed: [], text: "" }))]);
        for (const length of [1, 100])
          expect(answerOf(shell, without(rest, lineEnd(bytes), length))).to.equal(`${run.nonce} fatal BOOTSTRAP\n`);
        expect(readdirSync(inFolder())).to.deep.equal([]);
      });

      it("F-12 starts no runner that is incomplete", () => {
        const ran = inFolder("ran");
        const command = Buffer.from(runnerCommand(run, { segment: 1, changed: [], text: `: >${ran}` }));
        const body = command.indexOf("\n") + 1;
        for (const damaged of [
          without(command, lineEnd(command), 1),
          command.subarray(0, -2),
          command.subarray(0, body),
        ])
          expect(answerOf(shell, Buffer.concat([follower(), damaged, Buffer.from("beat\n")]))).to.include(
            " fatal DAMAGED runner",
          );
        expect([existsSync(ran), readdirSync(inFolder("state", "lock"))]).to.deep.equal([false, []]);
      });
    });
});
