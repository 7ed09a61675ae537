import { expect } from "chai";
import { checkEndpoint } from "#engine/transport/check-endpoint.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { KcoreError } from "#errors/problem.ts";

const good: Endpoint = { name: "n1", transport: "ssh", address: "n1", port: 22, user: "root", hostKeys: [], jump: [] };

describe("checkEndpoint", () => {
  it("accepts host names, addresses and usual user names", () => {
    const names = ["n1", "n1.example.com", "n1.example.com.", "a_b"];
    for (const address of [...names, "192.0.2.1", "2001:db8::1", "fe80::1%eth0"]) checkEndpoint({ ...good, address });
    for (const user of ["root", "first.last", "svc-kcore", "_apt", "user@example.com", "CORP\\ada", "machine$"])
      checkEndpoint({ ...good, user });
  });

  it("refuses names with a meaning for sh or ssh, also in a jump host", () => {
    const hostile = [
      "",
      "-oProxyCommand=id",
      "a b",
      "a;b",
      "$(id)",
      "`id`",
      "a\nb",
      "a\0b",
      "a/b",
      "n1\\n",
      "é",
      "a..b",
    ];
    hostile.push("fe80::1%e;id");
    for (const address of hostile) expect(() => checkEndpoint({ ...good, address }), address).to.throw(KcoreError);
    for (const user of [...hostile, "a:b", "a$b", "x".repeat(200)].filter((text) => !["a..b", "n1\\n"].includes(text)))
      expect(() => checkEndpoint({ ...good, user }), user).to.throw(KcoreError);
    for (const port of [0, -1, 65536, 1.5, NaN]) expect(() => checkEndpoint({ ...good, port })).to.throw(KcoreError);
    expect(() => checkEndpoint({ ...good, jump: [{ ...good, user: "-l" }] })).to.throw(KcoreError);
  });

  it("shows a refused name without its control characters", () =>
    expect(() => checkEndpoint({ ...good, user: "\u001b[2Jx" })).to.throw(
      KcoreError,
      "“\\u001b[2Jx” is not a user name",
    ));
});
