import { createServer, type AddressInfo } from "node:net";
import { expect } from "chai";
import { waitAction } from "#actions/wait.ts";
import { actionContext } from "#support/action-context.ts";

describe("wait", () => {
  it("waits for the given time", async () => {
    const started = performance.now();
    await waitAction.run(waitAction.args.parse({ for: "20ms" }), actionContext());
    expect(performance.now() - started).to.be.greaterThan(15);
  });

  it("ends at once when the run is aborted", async () => {
    const signal = AbortSignal.abort();
    const ended = await waitAction
      .run(waitAction.args.parse({ for: "1h" }), actionContext({ signal }))
      .catch((error: Error) => error);
    expect(ended).to.have.property("name", "AbortError");
  });

  it("waits until a port answers, and notes why the port does not", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const args = waitAction.args.parse({ tcp: `127.0.0.1:${port}` });
    try {
      expect(await waitAction.run(args, actionContext())).to.deep.equal({ changed: false, outputs: {} });
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
    expect(await waitAction.plan(args, actionContext({ dryRun: true }))).to.equal("unknown");
    const stop = new AbortController();
    const notes: string[] = [];
    const note = (text: string): void => {
      notes.push(text);
      stop.abort();
    };
    await waitAction.run(args, actionContext({ signal: stop.signal, note })).catch(() => undefined);
    expect(notes).to.deep.equal([`127.0.0.1 port ${port} does not answer yet: connect ECONNREFUSED 127.0.0.1:${port}`]);
  });

  it("takes either a duration or an endpoint, and refuses malformed ones", () => {
    for (const args of [
      {},
      { for: "1s", tcp: "a:1" },
      { for: "soon" },
      { tcp: "a" },
      { tcp: "a:0" },
      { tcp: "a:99999" },
    ])
      expect(waitAction.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
    expect(waitAction.args.parse({ tcp: "[fd00::1]:22" }).tcp).to.deep.equal({ host: "fd00::1", port: 22 });
  });
});
