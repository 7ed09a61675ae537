import { readFile, stat, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { z } from "zod";
import { durableJson, readCached } from "#base/durable-file.ts";
import { codeOf } from "#support/rejection.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("a small file as a database", () => {
  const folder = folderOfEachTest("durable");
  const open = (name: string) => durableJson(folder(name), z.object({ count: z.int() }), { count: 0 });

  it("begins with the given data, and is 0600 once it is written", async () => {
    const db = open("counts.json");
    await db.read();
    await db.update((data) => void data.count++);
    const again = open("counts.json");
    await again.read();
    expect(again.data).to.deep.equal({ count: 1 });
    expect((await stat(folder("counts.json"))).mode & 0o777).to.equal(0o600);
  });

  it("is not read when it is damaged or a folder, and stays as it is", async () => {
    for (const text of ["{", '{"count":"many"}']) {
      await writeFile(folder("counts.json"), text);
      const db = open("counts.json");
      expect(await db.read().catch(() => "refused")).to.equal("refused");
      expect([db.data, await readFile(folder("counts.json"), "utf8")]).to.deep.equal([{ count: 0 }, text]);
    }
    expect(await codeOf(open(".").read())).to.equal("FILE_UNREADABLE");
  });

  it("is as good as missing where its data can be had again", async () => {
    const read = (name: string) => readCached(folder(name), z.object({ count: z.int() }));
    await open("whole.json").write();
    await writeFile(folder("damaged.json"), "{");
    const found = [await read("whole.json"), await read("damaged.json"), await read("missing.json"), await read(".")];
    expect(found).to.deep.equal([{ count: 0 }, undefined, undefined, undefined]);
  });

  it("may lie in a test's own files", async () => {
    const texts = new Map<string, string>();
    const files = {
      read: async (path: string) => texts.get(path),
      replace: async (path: string, text: string) => void texts.set(path, text),
    };
    await durableJson("/a", z.array(z.int()), [1], files).write();
    expect([texts.get("/a"), await readCached("/a", z.array(z.int()), files)]).to.deep.equal(["[\n  1\n]\n", [1]]);
  });
});
