import { expect } from "chai";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readSecretFile, resolveSecret, runSecretCommand, type SecretSources } from "#engine/roster/resolve-secret.ts";
import { parseReference } from "#engine/params/secret-reference.ts";
import { problemsIn, problemsOfRejection } from "#support/problems.ts";
import { inProject } from "#support/in-project.ts";

const sources: SecretSources = {
  env: { PW: "from env", EMPTY: "" },
  readFile: (path) => Buffer.from(path === "/bin" ? [0xff] : `of ${path}\n`),
  run: (command) => Promise.resolve(Buffer.from(`ran ${command}\r\n`)),
  open: (sealed) => Promise.resolve(Buffer.from(`opened ${sealed}\n`)),
};

describe("resolveSecret", () => {
  it("reads environment variables, files and commands, without a final line break", async () => {
    const read = async (reference: Parameters<typeof resolveSecret>[0]): Promise<string> =>
      (await resolveSecret(reference, sources)).reveal();
    expect([await read({ env: "PW" }), await read({ file: "/run/pw" })]).to.deep.equal(["from env", "of /run/pw"]);
    expect(await read({ command: "pass show x" })).to.equal("ran pass show x");
  });

  it("reports an unreadable secret at the reference's place", async () => {
    const at = { file: "roster/a.yaml", line: 2, column: 5 };
    expect(await problemsOfRejection(resolveSecret({ env: "NO" }, sources, at))).to.deep.equal([
      "roster/a.yaml:2:5+1 the secret env:NO cannot be read: the environment has no NO [SECRET_UNREADABLE] | export NO",
    ]);
    expect(await problemsOfRejection(resolveSecret({ env: "EMPTY" }, sources))).to.deep.equal([
      "the secret env:EMPTY is empty [SECRET_UNREADABLE]",
    ]);
    expect((await problemsOfRejection(resolveSecret({ file: "/bin" }, sources)))[0]).to.include("it is not UTF-8 text");
  });
});

describe("runSecretCommand", () => {
  it("returns the output of a shell command", async () =>
    expect(Buffer.from(await runSecretCommand("printf '%s' a; echo b")).toString()).to.equal("ab\n"));
  it("fails with the command's exit status, never with its output", async () =>
    expect(await problemsOfRejection(runSecretCommand("echo s3cret; exit 3"))).to.deep.equal([
      "it exits with 3 [SECRET_UNREADABLE]",
    ]));
  it("ends a command and its child processes at the time limit", async () =>
    expect(await problemsOfRejection(runSecretCommand("sleep infinity & sleep infinity", 50))).to.deep.equal([
      "it took longer than 0.05 s [SECRET_UNREADABLE]",
    ]));
});

describe("readSecretFile", () => {
  it("refuses a file that others can read", () =>
    inProject({}, (project) => {
      const path = join(project, "pw");
      writeFileSync(path, "x\n");
      chmodSync(path, 0o600);
      expect(Buffer.from(readSecretFile(path)).toString()).to.equal("x\n");
      chmodSync(path, 0o644);
      expect(problemsIn(() => readSecretFile(path))).to.deep.equal([
        `others can read or write ${path} [SECRET_UNREADABLE] | chmod o-rw ${path}`,
      ]);
    }));
});

describe("parseReference", () => {
  it("accepts nothing but references", () => {
    expect(["env:PW", "command: pass show a", { file: "/x" }].map(parseReference)).to.deep.equal([
      { env: "PW" },
      { command: "pass show a" },
      { file: "/x" },
    ]);
    const texts = ["hunter2", "env:", "env:a b", "ENV:PW", "http:x", ""];
    for (const text of [...texts, 5, null, {}, { env: "A", file: "b" }, { env: 5 }, ["env:A"]])
      expect(parseReference(text)).to.equal(undefined);
  });
});
