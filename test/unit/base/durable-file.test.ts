import { readFile, stat, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { z } from "zod";
import { durableJson, readCached } from "#base/durable-file.ts";
import { codeOf } from "#support/rejection.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("a small JSON file as a database", () => {
  const folder = folderOfEachTest("durable");
  const open = (name: string) => durableJson(folder(name), z.object({ count: z.int() }), { count: 0 });

  it("begins with the given data, and is written 0600", async () => {
    const db = open("counts.json");
    await db.read();
    await db.update((data) => void data.count++);
    const again = open("counts.json");
    await again.read();
    expect(again.data).to.deep.equal({ count: 1 });
    expect((await stat(folder("counts.json"))).mode & 0o777).to.equal(0o600);
  });

  it("fails to read a damaged file or a folder, and leaves it as it is", async () => {
    for (const text of ["{", '{"count":"many"}']) {
      await writeFile(folder("counts.json"), text);
      const db = open("counts.json");
      expect(await db.read().catch(() => "refused")).to.equal("refused");
      expect([db.data, await readFile(folder("counts.json"), "utf8")]).to.deep.equal([{ count: 0 }, text]);
    }
    expect(await codeOf(open(".").read())).to.equal("FILE_UNREADABLE");
  });

  it("counts as missing if it is damaged and holds only cached data", async () => {
    const read = (name: string) => readCached(folder(name), z.object({ count: z.int() }));
    await open("whole.json").write();
    await writeFile(folder("damaged.json"), "{");
    const found = [await read("whole.json"), await read("damaged.json"), await read("missing.json"), await read(".")];
    expect(found).to.deep.equal([{ count: 0 }, undefined, undefined, undefined]);
  });
});
