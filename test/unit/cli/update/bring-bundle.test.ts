import { randomBytes } from "node:crypto";
import { EventEmitter } from "node:events";
import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import type { ApiClient, CallOptions } from "#api/client.ts";
import { tasksAsLines } from "#base/tasks.ts";
import { bringBundle } from "#cli/update/bring-bundle.ts";
import type { FoundBundle } from "#cli/update/bundles.ts";
import { KcoreError } from "#errors/problem.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

type Piece = { readonly offset: number; readonly data: string };

const size = 300_000;
const where = "192.0.2.11:9090";

describe("the upload of a bundle", () => {
  const dir = folderOfEachTest("bring");
  let source: FoundBundle;
  let held: number;
  let offsets: number[];
  /** The source of signals. */
  let host: EventEmitter;
  let lines: string[];

  beforeEach(async () => {
    const file = dir("bundle");
    await writeFile(file, randomBytes(size));
    const bundle = { sha256: "a".repeat(64), size, storePath: "", narHash: "", version: "0.4.0", arch: "x86_64" };
    source = { bundle, file, start: 0 };
    held = 0;
    offsets = [];
    host = new EventEmitter();
    lines = [];
  });

  /** A controller that calls `before` with the name of each call. */
  const clientOf = (before: (name: string) => void): ApiClient =>
    ({
      async call(name: string, { offset, data }: Piece, { id: sha256, signal }: CallOptions) {
        before(name);
        signal?.throwIfAborted();
        if (name === "listBundles")
          return { bundles: held > 0 ? [{ sha256: source.bundle.sha256, held, whole: held === size }] : [] };
        expect(sha256).to.equal(source.bundle.sha256);
        offsets.push(offset);
        held = offset + Buffer.from(data, "base64").length;
        return { held, whole: held === size };
      },
    }) as unknown as ApiClient;
  const tasks = tasksAsLines((line) => void lines.push(line));
  const bring = (before: (name: string) => void = () => undefined): Promise<unknown> =>
    bringBundle(clientOf(before), source, where, tasks, host as NodeJS.Process).catch((error: unknown) => error);
  /** Sends the signal at the second piece. */
  const interrupting = (signal: string) => (name: string) => {
    if (name === "putBundle" && offsets.length === 1) host.emit(signal);
  };

  it("reports at Ctrl-C how much was uploaded, and resumes there in the next call", async () => {
    const stopped = await bring(interrupting("SIGINT"));
    expect(stopped).to.be.instanceOf(KcoreError).and.to.include({ exitCode: 130 });
    expect((stopped as KcoreError).problems).to.deep.equal([
      {
        code: "INTERRUPTED",
        message: `stopped: 65.5/300.0 kB of kcore 0.4.0 are at ${where}, and the update was not handed over`,
        hint: "the same command goes on from there",
      },
    ]);
    expect(host.listenerCount("SIGINT") + host.listenerCount("SIGTERM")).to.equal(0);

    const uploaded = held;
    offsets = [];
    lines = [];
    expect(await bring()).to.equal(undefined);
    expect(offsets[0]).to.equal(uploaded);
    expect(held).to.equal(size);
    expect(lines).to.deep.equal([`bringing kcore 0.4.0 to ${where}`, "300.0 kB"]);
  });

  it("shows nothing if the controller has the bundle", async () => {
    held = size;
    expect([await bring(), lines, offsets]).to.deep.equal([undefined, [], []]);
  });

  it("reports at a stop before the first answer that the update was not handed over", async () => {
    const stopped = await bring(() => host.emit("SIGTERM"));
    expect(stopped).to.have.property("message", "stopped: the update was not handed over");
    expect(lines).to.deep.equal([]);
  });

  it("is interrupted also by a signal during its last piece", async () => {
    const last = (name: string): void => {
      if (name === "putBundle" && offsets.length === 2) queueMicrotask(() => host.emit("SIGINT"));
    };
    const stopped = await bring(last);
    expect(held).to.equal(size);
    expect(stopped).to.have.property("exitCode", 130);
  });
});
