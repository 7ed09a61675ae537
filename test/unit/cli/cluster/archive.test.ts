import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { openArchive } from "#cli/cluster/archive.ts";
import { generate, isForPassphrase, lock, recipientOf, seal } from "#engine/encrypted-values/age.ts";
import { runTasks } from "#base/tasks.ts";

const backup = { kind: "kcore-context", context: "lab", controllers: [], files: {} };

describe("an archive of a cluster", () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "kcore-archive-"))));
  afterEach(() => rmSync(folder, { recursive: true }));

  it("in age's armor opens by the identity of a recipient", async () => {
    const identity = await generate({ postQuantum: false });
    const recipient = (await recipientOf(identity)) ?? "";
    const sealed = await seal(Buffer.from(JSON.stringify(backup)), [recipient], { place: "x", fingerprints: [] });
    const lines =
      Buffer.from(sealed)
        .toString("base64")
        .match(/.{1,64}/g) ?? [];
    const armored = `-----BEGIN AGE ENCRYPTED FILE-----\n${lines.join("\n")}\n-----END AGE ENCRYPTED FILE-----\n`;
    writeFileSync(join(folder, "a.age"), armored);
    writeFileSync(join(folder, "identity"), `${identity}\n`, { mode: 0o600 });
    const opened = await openArchive(join(folder, "a.age"), { identity: join(folder, "identity") }, runTasks);
    expect(opened).to.deep.equal({ backup });
  });

  it("is for a passphrase if its header says so", async () => {
    const armored = Buffer.from(await lock("text", "a passphrase", 1));
    expect(isForPassphrase(armored)).to.equal(true);
    const inner = armored.toString().replace(/-----.*-----/g, "");
    expect(isForPassphrase(Buffer.from(inner, "base64"))).to.equal(true);
    expect(isForPassphrase(Buffer.from("-----BEGIN AGE ENCRYPTED FILE-----\n?"))).to.equal(false);
  });
});
