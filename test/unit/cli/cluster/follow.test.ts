import { PassThrough } from "node:stream";
import { expect } from "chai";
import { followChanges } from "#cli/cluster/follow.ts";
import type { Cluster } from "#cli/cluster/open-cluster.ts";

describe("following a cluster", () => {
  it("fetches again when the watch has begun, and continues at the next controller when a stream ends", async () => {
    const streams = new Map<string, PassThrough>();
    let value = 1;
    const clientAt = (endpoint: string) => ({
      open: () => {
        const stream = new PassThrough();
        streams.set(endpoint, stream);
        return Promise.resolve(stream);
      },
    });
    const cluster = { endpoints: ["a", "b"], current: () => "a", clientAt, ask: (work: () => unknown) => work() };
    const stop = new AbortController();
    const messages: string[] = [];
    const changes = followChanges(cluster as unknown as Cluster, {
      registers: [],
      fetch: () => Promise.resolve(value),
      signal: stop.signal,
      say: (text) => void messages.push(text),
    });
    const next = async () => (await changes.next()).value as number | undefined;
    expect(await next()).to.equal(1);
    value = 2;
    expect(await next()).to.equal(2);
    streams.get("a")?.end();
    value = 3;
    expect(await next()).to.equal(3);
    expect(messages).to.deep.equal(["a: the controller ended the watch; the next controller is asked"]);
    streams.get("b")?.write(`${JSON.stringify({ type: "soft", about: "nodes", id: "n1" })}\n`);
    value = 4;
    expect(await next()).to.equal(4);
    const last = next();
    stop.abort();
    expect(await last).to.equal(undefined);
  });
});
