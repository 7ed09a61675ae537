import { expect } from "chai";
import { formatEndpoint, parseEndpoint, parseListen } from "#api/endpoint.ts";

describe("an endpoint", () => {
  it("is a host with or without a port, IPv6 in brackets or bare", () => {
    expect(parseEndpoint("n1")).to.deep.equal({ host: "n1", port: 9090 });
    expect(parseEndpoint("192.0.2.1:19090")).to.deep.equal({ host: "192.0.2.1", port: 19090 });
    expect(parseEndpoint("2001:db8::1")).to.deep.equal({ host: "2001:db8::1", port: 9090 });
    expect(parseEndpoint("[2001:db8::1]:443")).to.deep.equal({ host: "2001:db8::1", port: 443 });
  });
  it("is formatted as it is parsed", () => {
    for (const text of ["n1:9090", "[2001:db8::1]:443"]) expect(formatEndpoint(parseEndpoint(text))).to.equal(text);
  });
  it("is no URL, and has no other characters or ports", () => {
    for (const text of ["", "n1:", "n1:0", "n1:65536", "https://n1", "a b", "[n1]:1", "-x", "n1:9090/x", "n1;id"]) {
      expect(() => parseEndpoint(text), text).to.throw("is not an endpoint");
    }
  });

  it("to listen at may have port 0, any free port", () =>
    expect(["[::]:9091", "[::]:0", "127.0.0.1:0", "127.0.0.1"].map((text) => parseListen(text, 9091))).to.deep.equal([
      { host: "::", port: 9091 },
      { host: "::", port: 0 },
      { host: "127.0.0.1", port: 0 },
      { host: "127.0.0.1", port: 9091 },
    ]));
});
