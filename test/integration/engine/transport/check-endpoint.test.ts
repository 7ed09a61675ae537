import { expect } from "chai";
import { tries } from "#support/hostile.ts";
import fc, { anyText } from "#support/properties.ts";
import { createHook } from "node:async_hooks";
import { createTransport } from "#engine/transport/connect.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { KcoreError } from "#errors/problem.ts";

const good: Endpoint = { name: "n1", transport: "ssh", address: "n1", port: 22, user: "root", hostKeys: [], jump: [] };

describe("endpoints", () => {
  it("with arbitrary bytes start no process, socket or DNS query unless they are valid (S-2)", async () => {
    let touched = 0;
    const asked: string[] = [];
    const hook = createHook({
      init: (_id, type) => {
        if (/^(PROCESSWRAP|TCPWRAP|TCPCONNECTWRAP|GETADDRINFOREQWRAP)$/.test(type)) touched++;
      },
    }).enable();
    const names = {
      resolve: (name: string) => (
        asked.push(name),
        Promise.reject(new KcoreError({ code: "DNS_FAILED", message: name }))
      ),
    };
    const transport = createTransport({ home: "/nonexistent", knownHostsFiles: [], names });
    const nasty = fc.oneof(
      anyText(),
      fc.constantFrom("-oProxyCommand=", "$(touch /tmp/x)", "`id`", "\\", "a\nb", "a'b", 'a"b', "|id", "-", "--"),
      fc.string().map((text) => `-${text}`),
    );
    const outcomes = new Set<string>();
    try {
      const property = fc.asyncProperty(nasty, nasty, async (address, user) => {
        const error: unknown = await transport.connect({ ...good, address, user }).catch((thrown: unknown) => thrown);
        outcomes.add(error instanceof KcoreError ? (error.problems[0]?.code ?? "") : "bug");
      });
      await fc.assert(property, { numRuns: tries(2_000, 10_000) });
    } finally {
      hook.disable();
    }
    expect(
      [...outcomes].filter((code) => !["ENDPOINT_INVALID", "DNS_FAILED", "AUTH_FAILED"].includes(code)),
    ).to.deep.equal([]);
    expect(asked.filter((name) => !/^[\w.-]+$/.test(name) || name.startsWith("-"))).to.deep.equal([]);
    expect(touched).to.equal(0);
  });
});
