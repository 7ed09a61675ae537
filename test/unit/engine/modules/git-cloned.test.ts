import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { secret } from "#engine/step/secret.ts";
import { gitCloned } from "#engine/modules/git-cloned.ts";
import { startSshd } from "#support/sshd.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { makeTempDir } from "#support/temp-dir.ts";

describe("git.cloned", () => {
  for (const shell of shellsOf(import.meta.filename))
    it(`clones over SSH with the given key, and only with the given host key, on ${shell}`, async () => {
      const folder = await makeTempDir("git");
      const sshd = await startSshd();
      try {
        const text = `git init -q repository && cd repository
git -c user.name=a -c user.email=a commit -q --allow-empty -m one && git rev-parse HEAD`;
        const head = execFileSync("sh", ["-ec", text], { cwd: folder.path, encoding: "utf8" }).trim();
        const knownHosts = `[127.0.0.1]:${sshd.port} ${sshd.hostKey}`;
        const run = (known: string) => {
          const url = `ssh://root@127.0.0.1:${sshd.port}${folder.path}/repository`;
          const key = secret(readFileSync(sshd.identityFile, "utf8"));
          const step = stepOf(gitCloned, { path: join(folder.path, "clone"), url, key, knownHosts: known });
          return runStepOn(shell, step, { env: { HOME: "/nonexistent" } });
        };
        const { problem } = await run(knownHosts.replace(/AAAA.{40}/, "$&x"));
        expect(problem?.code).to.equal("GIT_FAILED");
        expect(problem?.detail).to.contain("Host key verification failed");
        expect((await run(knownHosts)).now["head"]).to.equal(head);
      } finally {
        await sshd.stop();
        await folder.remove();
      }
    });
});
