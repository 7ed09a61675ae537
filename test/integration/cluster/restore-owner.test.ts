import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { nodeProgram } from "#support/program.ts";
import { createTestCluster } from "#support/cluster.ts";
import { startController } from "#support/controllers.ts";

const nobodyUid = 65_534;

/** Runs as the folder's owner: replaces each new file in the folder by a link to a file of root's. */
const attack = `
const fs = require("node:fs");
const [folder, victim] = process.argv.slice(1);
process.stdout.write("ready\\n");
for (;;)
  for (const name of fs.readdirSync(folder))
    if (name.startsWith("incoming-"))
      try {
        if (fs.lstatSync(folder + "/" + name).isSymbolicLink()) continue;
        fs.unlinkSync(folder + "/" + name);
        fs.symlinkSync(victim, folder + "/" + name);
      } catch {}
`;

describe("a controller's state folder of a hostile owner", () => {
  it("is not used by a restore as root to write through a link", async function () {
    if (process.getuid?.() !== 0) this.skip();
    const cluster = await createTestCluster();
    const controller = await startController(cluster);
    try {
      for (let index = 0; index < 60; index++)
        await controller.operator.call("putObject", { value: { text: "x".repeat(60_000) } }, { id: `Large/n${index}` });
      const backup = join(cluster.dir, "backup.json");
      const answer = await controller.operator.open("backup", {});
      await writeFile(backup, answer, { mode: 0o600 });
      await controller.stop();
      const victim = join(cluster.dir, "victim");
      await writeFile(victim, "root's", { mode: 0o600 });
      await promisify(execFile)("chmod", ["-R", "a+rX", cluster.dir]);
      await promisify(execFile)("chmod", ["600", victim]);
      const folder = join(cluster.dir, "db");
      const config = join(cluster.dir, "controller.yaml");
      const text = await readFile(join(controller.folder, "controller.yaml"), "utf8");
      await writeFile(config, text.replace(controller.dbPath, folder));
      await mkdir(folder, { mode: 0o700 });
      await chown(folder, nobodyUid, nobodyUid);
      const attacker = spawn(process.execPath, ["-e", attack, folder, victim], { uid: nobodyUid, gid: nobodyUid });
      try {
        await once(attacker.stdout, "data");
        for (let turn = 0; turn < 6; turn++)
          await promisify(execFile)(process.execPath, [
            nodeProgram,
            "controller",
            "restore",
            backup,
            "--config",
            config,
          ]).catch(() => undefined);
      } finally {
        attacker.kill("SIGKILL");
      }
      const { uid, mode } = await stat(victim);
      expect([uid, mode & 0o777, await readFile(victim, "utf8")]).to.deep.equal([0, 0o600, "root's"]);
    } finally {
      await controller.end();
      await cluster.remove();
    }
  });
});
