import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { expect } from "chai";
import { KcoreError } from "#errors/problem.ts";
import { withLock } from "#lab/lock.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

describe("a lab's lock", () => {
  let home: TempDir;

  before(async () => {
    home = await makeTempDir("lock");
  });

  after(() => home.remove());

  it("admits one holder at a time", async () => {
    const order: string[] = [];
    const work = async (name: string): Promise<void> => {
      order.push(`${name} in`);
      await new Promise((done) => setTimeout(done, 50));
      order.push(`${name} out`);
    };
    await Promise.all([
      withLock(home.path, "a", 10, () => work("first")),
      withLock(home.path, "a", 10, () => work("second")),
    ]);
    expect(order[0]?.split(" ")[0]).to.equal(order[1]?.split(" ")[0]);
    expect(order.filter((line) => line.endsWith("in"))).to.have.length(2);
  });

  it("names the holder after the time limit", async () => {
    await withLock(home.path, "b", 10, async () => {
      const refused = await withLock(home.path, "b", 0, async () => "let in").catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(KcoreError);
      expect((refused as KcoreError).problems[0]?.code).to.equal("LAB_BUSY");
    });
  });

  it("is released when its holder is killed", async () => {
    const module = resolve(import.meta.dirname, "../../../src/lab/lock.ts");
    const program = `const { withLock } = await import(${JSON.stringify(module)});
      await withLock(${JSON.stringify(home.path)}, "c", 10, async () => { console.log("in"); await new Promise((done) => setTimeout(done, 60_000)); });`;
    const holder = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(holder.stdout, "data");
    holder.kill("SIGKILL");
    expect(await withLock(home.path, "c", 5, async () => "let in")).to.equal("let in");
  });
});
