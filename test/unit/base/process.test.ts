import { buffer } from "node:stream/consumers";
import { expect } from "chai";
import { run } from "#base/process.ts";
import { isAlive, markProcess, type ProcessMark } from "#engine/run/process-mark.ts";

describe("a program that is run", () => {
  it("gets its arguments, folder, environment and input unchanged", async () => {
    const words = ["a b", "$(id)", "'; echo x", "\\", "-n", "`id`", "*", "ü\n", ""];
    const { code, stdout } = await run(["printf", "%s|", ...words]);
    expect([code, stdout]).to.deep.equal([0, `${words.join("|")}|`]);
    const sh = ["/bin/sh", "-c", 'pwd; echo "$A"; cat'];
    expect((await run(sh, { cwd: "/", env: { A: "1" }, input: "read" })).stdout).to.equal("/\n1\nread");
    expect((await run(["cat"])).stdout, "without input it finds an end").to.equal("");
  });

  it("runs in the present working directory, also if that changed since zx was loaded", async () => {
    const before = process.cwd();
    await run(["true"]);
    process.chdir("/");
    try {
      expect((await run(["pwd"])).stdout).to.equal("/\n");
    } finally {
      process.chdir(before);
    }
  });

  it("gives its exit code, its signal and both streams", async () => {
    const resultOf = async (...words: string[]) => {
      const { code, signal, stdout, stderr } = await run(words);
      return [code, signal, stdout, stderr];
    };
    expect(await resultOf("/bin/sh", "-c", "echo out; echo err >&2; exit 7")).to.deep.equal([
      7,
      undefined,
      "out\n",
      "err\n",
    ]);
    expect(await resultOf("/bin/sh", "-c", "kill -9 $$")).to.deep.equal([137, "SIGKILL", "", ""]);
    expect((await resultOf("kcore-no-such-program"))[0]).to.equal(127);
    const { code, stderr } = await run(["true"], { cwd: "/nowhere" });
    expect([code, stderr]).to.satisfy(([a, b]: [number, string]) => a === 126 && b.includes("ENOENT"));
  });

  it("may end before it has read its input", async () => {
    expect((await run(["true"], { input: Buffer.alloc(1 << 20) })).code).to.equal(0);
  });

  it("is killed at its time limit, or when it prints more than its limit of bytes", async () => {
    expect(await run(["sleep", "60"], { limitMs: 1 })).to.include({ stopped: "time", signal: "SIGKILL" });
    expect((await run(["yes"], { mostBytes: 1000 })).stopped).to.equal("size");
    expect((await run(["/bin/sh", "-c", "yes >&2"], { mostBytes: 1000 })).stopped).to.equal("size");
  });

  it("is killed with its process group when the signal aborts", async () => {
    for (const [graceMs, before] of [
      [0, "trap '' TERM; "],
      [60_000, ""],
    ] as const) {
      const abort = new AbortController();
      let child: ProcessMark | undefined;
      const onOutput = (_: string, text: Buffer): void => {
        child = markProcess(Number(text));
        abort.abort();
      };
      const ended = await run(["/bin/sh", "-c", `${before}sleep 60 & echo $!; wait`], {
        signal: abort.signal,
        ownGroup: true,
        onOutput,
        graceMs,
      }).catch((error: Error) => error.name);
      expect(ended).to.equal("AbortError");
      expect(isAlive(child)).to.equal(false);
    }
  });

  it("ends when it was killed, although another process holds its streams", async () => {
    const words = ["/bin/sh", "-c", "setsid sleep 60 & echo $!; yes"];
    let holder = 0;
    const onOutput = (_: string, text: Buffer): void => void (holder ||= Number.parseInt(text.toString(), 10));
    expect((await run(words, { mostBytes: 1000, ownGroup: true, onOutput })).stopped).to.equal("size");
    process.kill(holder, "SIGKILL");
  });

  it("may print without limit if only the last bytes are kept", async () => {
    const { stdout, stderr } = await run(["/bin/sh", "-c", "seq 1 100000; echo ä >&2"], { tailBytes: 12 });
    expect([stdout, stderr]).to.deep.equal(["9999\n100000\n", "ä\n"]);
  });

  it("is killed when the reader of its output fails", async () => {
    const sizes: number[] = [];
    await run(["head", "-c", "3000000", "/dev/zero"], { read: async (out) => sizes.push((await buffer(out)).length) });
    expect(sizes).to.deep.equal([3_000_000]);
    const fail = async (): Promise<never> => {
      throw new Error("the disk is full");
    };
    expect(await run(["yes"], { read: fail }).catch((error: Error) => error.message)).to.equal("the disk is full");
  });
});
