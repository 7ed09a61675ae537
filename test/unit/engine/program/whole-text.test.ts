import { spawnSync } from "node:child_process";
import { expect } from "chai";
import { wholeText } from "#engine/program/bootstrap.ts";
import { shellsOf } from "#support/shells.ts";

const nonce = "0123456789abcdef";
const texts = {
  short: "echo one\nprintf '%s' 'two \\n\n three'\n",
  "short, with more than ASCII": "echo 'é'\n",
  long: `echo one\n${"# a comment of many words\n".repeat(100)}`,
};

describe("wholeText", () => {
  for (const shell of shellsOf(import.meta.filename, ["dash", "bash --posix", "busybox sh", "mksh"])) {
    const [program = "", ...words] = shell.split(" ");
    const run = (input: string) => {
      const entry = [...words, "-c", 'IFS= read -r k; eval "$k"'];
      return spawnSync(program, entry, { input, encoding: "utf8", env: { ...process.env, LC_ALL: "C.UTF-8" } }).stdout;
    };
    for (const [kind, text] of Object.entries(texts)) {
      it(`runs a text and leaves the rest of stdin unread: ${kind}, ${shell}`, () => {
        const own = spawnSync("dash", ["-c", text], { encoding: "utf8" }).stdout;
        expect(run(`${wholeText({ nonce }, `${text}cat\n`)}the rest\n`)).to.equal(`${own}the rest\n`);
      });

      it(`does not run a text with missing bytes: ${kind}, ${shell}`, () => {
        const [line = "", ...lines] = wholeText({ nonce }, text).split("\n");
        const body = lines.join("\n");
        for (const part of [body.slice(4), body.slice(0, 6) + body.slice(9), body.slice(0, -20)])
          expect(run(`${line}\n${part}`)).to.equal(`${nonce} fatal BOOTSTRAP\n`);
      });
    }
  }
});
