import { expect } from "chai";
import fc from "fast-check";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { blobOf } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { secret } from "#engine/step/secret.ts";
import { sh, type Sh } from "#engine/step/sh.ts";
import { draftOf, sessionOn } from "#support/sessions.ts";
import { shellsOf } from "#support/shells.ts";
import { startSshd } from "#support/sshd.ts";
import { runStepOn } from "#support/steps.ts";

/** Any text that a shell can hold: everything but NUL. Half of it are characters that are special in shells. */
const special = fc.constantFrom(
  ...Array.from("'\"\\`$(){}[]*?~#&|;<>!=%^-+ \t\n\r\v\f\u0001\u001b\u007f\u0085\u00a0\u2028é€😀"),
  "$(id)",
  "${x}",
  "\\n",
  "'\\''",
  "-n",
  "--",
  "EOF",
);
const anyText = fc.oneof(
  fc.array(special, { maxLength: 20 }).map((parts) => parts.join("")),
  fc.string({ unit: "grapheme", maxLength: 60 }).map((text) => text.replaceAll("\0", "")),
  fc.string({ unit: "binary", maxLength: 60 }).map((text) => text.replaceAll("\0", "").toWellFormed()),
);

const perProgram = 150;

/** A step with these texts as facts, which fails to converge if one byte differs. */
function step(texts: readonly string[]): Step {
  const facts = texts.map((text, index): [string, string] => [`v${index}`, text]);
  const joinSteps = (parts: readonly Sh[]): Sh => parts.reduce((before, part) => sh`${before}; ${part}`);
  return { want: Object.fromEntries(facts), probe: joinSteps(facts.map(([name, text]) => sh`fact ${name} ${text}`)) };
}

describe("any text through quoting", () => {
  const samples = (seed: number): string[] => fc.sample(anyText, { numRuns: perProgram, seed });

  for (const shell of shellsOf(import.meta.filename))
    it(`S-3 arrives unchanged as a fact, in ${shell}`, async () => {
      for (let seed = 1; seed <= 4; seed++) {
        const texts = samples(seed);
        const { outcome, have, stderr } = await runStepOn(shell, step(texts));
        expect(have, `seed ${seed}: ${stderr}`).to.deep.equal(
          Object.fromEntries(texts.map((text, index) => [`v${index}`, text])),
        );
        expect(outcome).to.equal("ok");
      }
    });

  for (const shell of shellsOf(import.meta.filename))
    it(`S-3 S-7 arrives unchanged as a secret and as file contents, in ${shell}`, async () => {
      for (const text of samples(9).slice(0, 40)) {
        const bytes = blobOf(Buffer.from(text), { sensitive: true });
        const { have, stdout, stderr } = await runStepOn(shell, {
          want: {},
          probe: sh`fact text ${secret(text)}; fact same "$(printf %s ${secret(text)} | cmp - ${bytes} && echo yes)"`,
        });
        expect({ have, stdout, stderr }).to.deep.equal({ have: { text, same: "yes" }, stdout: "", stderr: "" });
      }
    });

  it("S-3 arrives unchanged over ssh, as command, path and file name", async () => {
    const sshd = await startSshd();
    const folder = mkdtempSync(join(tmpdir(), "kcore-round-"));
    try {
      const names = samples(5)
        .map((text) => text.replaceAll("/", "_").slice(0, 40))
        .filter((text) => !["", ".", ".."].includes(text));
      const makes = names.map((name, index) => {
        const path = join(folder, `${index} ${name}`);
        const made: Step = {
          want: { content: name },
          probe: sh`fact content "$(cat -- ${path} 2>/dev/null; echo .)"`,
          apply: sh`printf %s ${name} >${path}`,
        };
        return draftOf(`step ${index}`, { ...made, want: { content: `${name}.` } });
      });
      const run = sessionOn(join(folder, "state"), { endpoint: { ...sshd.endpoint(), name: "n1" } });
      const { outcome, problem } = await run.session.perform([
        { stage: "s", drafts: [draftOf("facts", step(samples(6))), ...makes.slice(0, 60)] },
      ]);
      await run.session.finish(outcome);
      expect([outcome, problem]).to.deep.equal(["done", undefined]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
      await sshd.stop();
    }
  });
});
