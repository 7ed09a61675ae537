import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { secret } from "#engine/step/secret.ts";
import { gitCloned } from "#engine/modules/git-cloned.ts";
import { startSshd } from "#support/sshd.ts";
import { runStepOn, stepOf, type StepRun } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const commit = "0123456789abcdef0123456789abcdef01234567";

describe("git.cloned", () => {
  it("wants the newest commit of a ref, or the one that is given", () => {
    const want = (args: object) => stepOf(gitCloned, { path: "/srv/a", url: "https://a/b.git", ...args }).want;
    expect(want({})).to.deep.equal({
      kind: "repository",
      remote: "https://a/b.git",
      commit: "newest of HEAD",
      tree: "as checked out",
    });
    expect(want({ ref: commit })["commit"]).to.equal(commit);
    expect(want({ ref: "main", update: false })["commit"]).to.equal("any");
  });

  it("refuses options, passwords in the open, and refs that are none", () => {
    for (const args of [
      { url: "--upload-pack=x" },
      { url: "ext::sh -c x" },
      { url: "https://u:p@a/b" },
      { ref: "-f" },
      { ref: "a..b" },
      { ref: "a:b" },
      { password: "open" },
      { url: "ssh://a/b", password: secret("x") },
      { key: "open" },
      { ref: commit, update: false },
    ])
      expect(
        gitCloned.args.safeParse({ path: "/a", url: "https://a/b", ...args }).success,
        JSON.stringify(args),
      ).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: TempDir;
      const at = (...names: string[]): string => join(folder.path, ...names);
      const env = {
        HOME: "/nonexistent",
        GIT_AUTHOR_NAME: "a",
        GIT_AUTHOR_EMAIL: "a",
        GIT_COMMITTER_NAME: "a",
        GIT_COMMITTER_EMAIL: "a",
      };
      const git = (where: string, ...words: string[]): string =>
        execFileSync("git", ["-C", at(where), ...words], {
          encoding: "utf8",
          env: { ...process.env, ...env },
          stdio: ["ignore", "pipe", "ignore"],
        }).trim();
      const commitTo = (where: string, name: string, text: string): string => {
        writeFileSync(at(where, name), text);
        git(where, "add", name);
        git(where, "commit", "-qm", text);
        return git(where, "rev-parse", "HEAD");
      };
      let first: string;
      beforeEach(async () => {
        folder = await makeTempDir("git");
        mkdirSync(at("work"));
        git("work", "init", "-q", "-b", "main");
        first = commitTo("work", "it's", "one");
        git("work", "tag", "-a", "-m", "v1", "v1");
        git(".", "init", "-q", "--bare", "-b", "main", "bare");
        git("work", "remote", "add", "origin", at("bare"));
        push();
      });
      const push = (): string => git("work", "push", "-q", "--tags", "origin", "HEAD:refs/heads/main");
      afterEach(() => folder.remove());
      const run = (args: object = {}, options: object = {}): Promise<StepRun> =>
        runStepOn(shell, stepOf(gitCloned, { path: at("clone"), url: `file://${at("bare")}`, ...args }), {
          env,
          ...options,
        });

      it("clones, is in order then, and follows the branch", async () => {
        const dry = await run({}, { dryRun: true });
        expect([dry.outcome, dry.have, existsSync(at("clone"))], JSON.stringify(dry)).to.deep.equal([
          "would-change",
          { kind: "absent" },
          false,
        ]);
        const made = await run();
        expect([made.outcome, made.now["head"]], JSON.stringify(made)).to.deep.equal(["changed", first]);
        expect(readdirSync(folder.path).toSorted()).to.deep.equal(["bare", "clone", "work"]);
        expect((await run()).outcome).to.equal("ok");
        const second = commitTo("work", "it's", "two");
        push();
        const newer = await run({ ref: "main" });
        expect([newer.outcome, newer.have["commit"]], JSON.stringify(newer)).to.deep.equal([
          "changed",
          `${first}, ${second} is there`,
        ]);
        expect(readFileSync(at("clone/it's"), "utf8")).to.equal("two");
        commitTo("work", "it's", "three");
        push();
        expect((await run({ ref: "main", update: false })).outcome).to.equal("ok");
      });

      it("goes to a tag and to a commit, also back, with little history", async () => {
        const second = commitTo("work", "it's", "two");
        push();
        expect((await run({ depth: 1 })).now["head"]).to.equal(second);
        for (const ref of ["v1", second, first]) {
          const done = await run({ ref, depth: 1 });
          expect([done.outcome, done.now["head"]], JSON.stringify(done)).to.deep.equal([
            "changed",
            ref === second ? second : first,
          ]);
          expect((await run({ ref, depth: 1 }, { dryRun: true })).outcome).to.equal("ok");
        }
        rmSync(at("bare"), { recursive: true });
        expect((await run({ ref: first })).outcome).to.equal("ok");
      });

      it("refuses to lose changes and commits, and names them; force lets them go; files of others stay", async () => {
        await run();
        writeFileSync(at("clone/it's"), "mine");
        writeFileSync(at("clone/extra"), "mine");
        const refused = await run({}, { dryRun: true });
        expect([refused.problem?.code, refused.problem?.detail], JSON.stringify(refused)).to.deep.equal([
          "GIT_CHANGED",
          ' M "it\'s"'.replaceAll('"', ""),
        ]);
        expect([(await run({ force: true })).outcome, readFileSync(at("clone/it's"), "utf8")]).to.deep.equal([
          "changed",
          "one",
        ]);
        const own = commitTo("clone", "it's", "own");
        const ahead = await run();
        expect([ahead.problem?.code, ahead.problem?.detail?.includes(own)]).to.deep.equal(["GIT_CHANGED", true]);
        expect((await run({ force: true })).now["head"]).to.equal(first);
        expect(readFileSync(at("clone/extra"), "utf8")).to.equal("mine");
      });

      it("takes another remote, and refuses what is no repository", async () => {
        await run();
        git(".", "clone", "-q", "--bare", at("bare"), "moved");
        expect((await run({ url: at("moved") })).now["remote"]).to.equal(at("moved"));
        mkdirSync(at("full"));
        writeFileSync(at("full/a"), "");
        expect((await run({ path: at("full") })).problem?.code).to.equal("FILE_NOT_EMPTY");
        rmSync(at("full/a"));
        expect((await run({ path: at("full") })).outcome).to.equal("changed");
      });

      it("says what git said of a repository or ref that is not there, in a dry run too, and leaves nothing", async () => {
        for (const args of [{ url: `file://${at("none")}` }, { ref: "none" }])
          for (const dryRun of [true, false]) {
            const { problem } = await run(args, { dryRun });
            expect(problem?.code, JSON.stringify(problem)).to.equal("GIT_FAILED");
          }
        expect((await run({ ref: commit })).problem?.code).to.equal("GIT_FAILED");
        expect(readdirSync(folder.path).toSorted()).to.deep.equal(["bare", "work"]);
      });

      it("brings submodules at what is recorded", async () => {
        git(".", "init", "-q", "-b", "main", "sub");
        commitTo("sub", "s", "sub");
        git("work", "-c", "protocol.file.allow=always", "submodule", "add", "-q", at("sub"), "sub");
        git("work", "commit", "-qm", "sub");
        push();
        writeFileSync(at("gitconfig"), '[protocol "file"]\n\tallow = always\n');
        const options = { env: { ...env, GIT_CONFIG_GLOBAL: at("gitconfig") } };
        const done = await run({ submodules: true }, options);
        expect([done.outcome, readFileSync(at("clone/sub/s"), "utf8")], JSON.stringify(done)).to.deep.equal([
          "changed",
          "sub",
        ]);
        rmSync(at("clone/sub"), { recursive: true });
        mkdirSync(at("clone/sub"));
        const drift = await run({ submodules: true, force: true }, options);
        expect([drift.outcome, drift.have["submodules"]?.startsWith("-")], JSON.stringify(drift)).to.deep.equal([
          "changed",
          true,
        ]);
      });

      it("gives a password to git alone, in a file that is gone afterwards", async () => {
        const bin = {
          git: `echo "$*" >>${at("argv")}; env >>${at("environ")}
case "$*" in *ls-remote*) printf 'protocol=https\\nhost=a.example:8443\\n\\n' | /usr/bin/git "$1" "$2" "$3" "$4" "$5" "$6" credential fill >${at("given")} ;; esac
exit 1`,
        };
        const { problem } = await run(
          { url: "https://a.example:8443/b", username: "me", password: secret("p@ss/w'rd") },
          { bin },
        );
        expect(problem?.code).to.equal("GIT_FAILED");
        for (const file of ["argv", "environ"])
          expect(readFileSync(at(file), "utf8"), file)
            .not.to.contain("p@ss")
            .and.not.to.contain("p%40ss");
        expect(readFileSync(at("given"), "utf8")).to.contain("username=me\npassword=p@ss/w'rd\n");
      });

      it("comes by ssh with the key that is given, and believes no host key that it was not told", async () => {
        const sshd = await startSshd();
        try {
          const url = `ssh://root@127.0.0.1:${sshd.port}${at("bare")}`;
          const key = secret(readFileSync(sshd.identityFile, "utf8"));
          const knownHosts = `[127.0.0.1]:${sshd.port} ${sshd.hostKey}`;
          const unknown = await run({ url, key, knownHosts: knownHosts.replace(/AAAA.{40}/, "$&x") });
          expect(
            [unknown.problem?.code, unknown.problem?.detail?.includes("Host key verification failed")],
            JSON.stringify(unknown),
          ).to.deep.equal(["GIT_FAILED", true]);
          const done = await run({ url, key, knownHosts });
          expect([done.outcome, done.now["head"]], JSON.stringify(done)).to.deep.equal(["changed", first]);
        } finally {
          await sshd.stop();
        }
      });
    });
});
