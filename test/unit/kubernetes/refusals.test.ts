import { expect } from "chai";
import { unreachableError } from "#kubernetes/refusals.ts";

describe("a failed connection to an API server", () => {
  const problemOf = (code: string) =>
    unreachableError("https://api:6443", Object.assign(new Error("why"), { code })).problems[0];

  it("is KUBERNETES_UNTRUSTED for every failed handshake, also with a server without TLS", () => {
    for (const code of ["EPROTO", "ERR_SSL_WRONG_VERSION_NUMBER", "DEPTH_ZERO_SELF_SIGNED_CERT"])
      expect(problemOf(code)).to.include({
        code: "KUBERNETES_UNTRUSTED",
        message: "there is no trusted TLS connection to https://api:6443: why",
      });
    expect(problemOf("ECONNREFUSED")).to.include({ code: "KUBERNETES_UNREACHABLE" });
  });
});
