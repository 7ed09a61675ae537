import { existsSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { runnerlessSessions } from "#engine/session/runnerless-session.ts";
import { Blob, blobName, blobOf } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { stepOfData } from "#engine/step/fragments/files.ts";
import { quote } from "#base/quote.ts";
import { sh } from "#engine/step/sh.ts";
import type { Connect } from "#engine/transport/host.ts";
import { openLocal } from "#engine/transport/local-host.ts";
import { childCpuClock } from "#support/cpu.ts";
import { commandStep, draftOf, performOn, sessionOn, keptOfRun } from "#support/sessions.ts";
import { shellsOf } from "#support/shells.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const shells = shellsOf(import.meta.filename, ["/bin/dash", "/bin/bash", "/bin/busybox", "/bin/mksh"]);

/** This machine, with another program as its /bin/sh: in a mount namespace of its own. */
function withShell(shell: string): Connect {
  return () => {
    const host = openLocal("n1");
    return Promise.resolve({
      ...host,
      exec: (command, options) =>
        host.exec(
          `exec unshare -m /bin/sh -c ${quote(`mount --bind ${shell} ${realpathSync("/bin/sh")} && exec /bin/sh -c ${quote(command)}`)}`,
          options,
        ),
    });
  };
}

/** Lines of the journal in one write: many short ones, and one that exceeds the block size of reads. */
const many = Array.from({ length: 200 }, (_, index) => `line ${index}`);
const long = "x".repeat(60_000);

describe("a whole session with any /bin/sh", () => {
  const at = folderOfEachTest("shells");

  /** A file of exactly these bytes. */
  const put = (name: string, content: string | Uint8Array): Step =>
    stepOfData({ kind: "file", path: at(name), blob: blobOf(content), mode: "0644", makeDirs: false });
  const everyByte = Buffer.from(Array.from({ length: 255 }, (_, index) => index + 1));
  const contents: Readonly<Record<string, string | Uint8Array>> = {
    "plain text": "all work and no play\n",
    nothing: "",
    "blanks at both ends": "\n\n a \\n 'quoted' \"$HOME\" `id`\n\n\n",
    "every byte that a shell can hold": Buffer.concat([everyByte, everyByte.toReversed(), everyByte]),
    "bytes that a shell cannot hold": Buffer.concat([Buffer.alloc(3), everyByte, Buffer.alloc(3)]),
    "more than one part": Buffer.alloc(1_500_000, "kcore\n"),
  };

  for (const shell of shells)
    it(`converges, and finds everything in order the second time, with ${shell}`, async function () {
      if (!existsSync(shell)) return this.skip();
      const connect = withShell(shell);
      const state = at("state");
      const drafts = [
        draftOf("says", commandStep(sh`echo "it's \\me"`), { register: "said" }),
        ...Object.entries(contents).map(([what, content], index) => draftOf(what, put(`file${index}`, content))),
        draftOf("later", (late) => put("later", late.steps.get("said")?.stdout ?? "?"), {
          needs: { facts: false, steps: ["said"] },
        }),
      ];
      for (const outcome of ["changed", "ok"]) {
        const run = await performOn(state, drafts, { connect, runId: outcome });
        expect([run.outcome, run.problem]).to.deep.equal(["done", undefined]);
        expect(run.outcomes()).to.deep.equal([
          "says changed",
          ...Object.keys(contents).map((what) => `${what} ${outcome}`),
          `later ${outcome}`,
        ]);
        expect(keptOfRun(state, outcome)).to.deep.equal(["journal"]);
        expect(readdirSync(join(state, "lock")).length).to.equal(1);
      }
      expect(readFileSync(at("later"), "utf8")).to.equal("it's \\me");
      for (const [index, content] of Object.values(contents).entries())
        expect(readFileSync(at(`file${index}`)).equals(Buffer.from(content))).to.equal(true);
    });

  for (const shell of shells)
    it(`lets checks, and all steps with its onFailure, follow a failed check, with ${shell}`, async function () {
      if (!existsSync(shell)) return this.skip();
      const check = (id: string, apply = sh`:`, more: Parameters<typeof draftOf>[2] = {}) => ({
        ...draftOf(id, commandStep(apply), { severity: "error", ...more }),
        isCheck: true as const,
      });
      const answers = { onFailure: ["test/first"] };
      const drafts = [
        check("first", sh`exit 1`),
        check("reacts", sh`:`, answers),
        check("follows"),
        draftOf("mends", commandStep(sh`:`), answers),
        draftOf("work", commandStep(sh`:`)),
      ];
      const run = await performOn(at("state"), drafts, { connect: withShell(shell) });
      expect(run.outcomes()).to.deep.equal(["first failed", "reacts changed", "follows changed", "mends changed"]);
      const passed = [check("first"), check("reacts", sh`:`, answers)];
      const fine = await performOn(at("fine"), passed, { connect: withShell(shell) });
      expect(fine.outcomes()).to.deep.equal(["first changed", "reacts skipped"]);
    });

  for (const shell of shells)
    it(`runs a command and gathers facts without a runner, with ${shell}`, async function () {
      if (!existsSync(shell)) return this.skip();
      const connect = withShell(shell);
      async function* stdin() {
        yield await Promise.resolve(Buffer.from("given"));
      }
      const argv = ["sh", "-c", "cat; printf '%s\\n' \"$@\"; echo apart >&2; exit 3", "sh", "a\\nb", "it's\n$HOME"];
      const command = draftOf("command", { want: {}, probe: sh`:`, apply: sh`exec ${argv}` });
      const asked = await performOn(at(), [command], { connect }, runnerlessSessions({ query: "ping", stdin }));
      expect(asked.problem?.message).to.equal("“command” failed with exit code 3");
      const printed = asked.events.flatMap((event) => (event.type === "step.output" ? [event] : []));
      const of = (stream: string) => printed.map((event) => (event.stream === stream ? event.text : "")).join("");
      expect([of("out"), of("err")]).to.deep.equal(["givena\\nb\nit's\n$HOME\n", "apart\n"]);
      const gathered = await performOn(at(), [], { connect }, runnerlessSessions({ query: "facts", stdin }));
      expect(gathered.outcome).to.equal("done");
      const facts = gathered.events.find((event) => event.type === "node.facts")?.facts;
      expect(facts).to.have.nested.property("kernel.release", release());
    });

  for (const shell of shells)
    it(`sends of 2,500 contents only those that a step asks for, with ${shell}`, async function () {
      if (!existsSync(shell)) return this.skip();
      const read: number[] = [];
      const offers = Array.from({ length: 2_500 }, (_, index) => {
        const blob = blobOf(`${index}\n`);
        const counted = (): Promise<Uint8Array> => {
          read.push(index);
          return blob.read();
        };
        return new Blob({ sha256: blob.sha256, size: blob.size, sensitive: false, read: counted });
      });
      const list = blobOf(offers.map((blob) => `${blobName(blob)} ${blob.size}\n`).join(""));
      const got = at("got");
      // All but every fifth are asked for: two portions, the first of a thousand.
      const step: Step = {
        want: { got: "1" },
        probe: sh`if [ -e ${got}.last ]; then fact got 1; else fact got 0; fi`,
        asks: sh`sed -n 'n;n;n;n;p' ${list}; sed -n 'p;n;p;n;p;n;n' ${list}`,
        apply: sh`cd "$K_RUN/blobs" && cat $(sed 's/ .*//' "$k_portion_file") >>${got} && { [ -n "$k_more" ] || : >${got}.last; }`,
        offers,
      };
      for (const outcome of ["changed", "ok"]) {
        const run = sessionOn(at("state"), { connect: withShell(shell), runId: outcome });
        await run.session.perform([{ stage: "s", drafts: [draftOf("many", step)] }], { isLast: true });
        await run.session.finish("done");
        expect(run.outcomes(), JSON.stringify(run.events)).to.deep.equal([`many ${outcome}`]);
        // The program; the list; the contents that the step asked for.
        expect(run.session.exchanges).to.equal(outcome === "changed" ? 4 : 1);
        expect(keptOfRun(at("state"), outcome)).to.deep.equal(["journal"]);
      }
      expect(read).to.have.length(2_000);
      expect(readFileSync(got, "utf8")).to.equal(read.map((index) => `${index}\n`).join(""));
    });

  for (const shell of shells)
    it(`reports many notes in order and with little CPU, with ${shell}`, async function () {
      if (!existsSync(shell)) return this.skip();
      const lines = many.flatMap((line) => (line === "line 100" ? [line, long] : [line]));
      writeFileSync(at("lines"), `${lines.join("\n")}\n`);
      const notes = commandStep(sh`sed "s/^/$k_nonce note $k_key /" ${at("lines")} >&5`);
      const used = childCpuClock();
      const run = await performOn(at("state"), [draftOf("notes", notes)], { connect: withShell(shell) });
      expect(run.events.flatMap((event) => (event.type === "step.note" ? [event.text] : []))).to.deep.equal(lines);
      // A shell that scans for the end of the last line needs ten times as much.
      expect(used(), "ms of processor").to.be.lessThan(2_500);
    });
});
