import { PassThrough } from "node:stream";
import { expect } from "chai";
import { scanHostKey } from "#engine/transport/scan-host-key.ts";
import type { Endpoint } from "#engine/transport/host.ts";

describe("scanHostKey", () => {
  it("fails with the reason of an abort, not as an unreachable host", async () => {
    const reason = new Error("stopped");
    const endpoint = { name: "n1", user: "root" } as Endpoint;
    const thrown: unknown = await scanHostKey(endpoint, new PassThrough(), AbortSignal.abort(reason)).catch(
      (error: unknown) => error,
    );
    expect(thrown).to.equal(reason);
  });
});
