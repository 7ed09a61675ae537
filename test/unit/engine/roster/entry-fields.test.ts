import { expect } from "chai";
import fc, { anyText } from "#support/properties.ts";
import { Address, EntryName, HostKeyText, LoginName, StateDir } from "#engine/roster/entry-fields.ts";

const shells =
  "-oProxyCommand=touch /tmp/x|$(id)|`id`|a;b|a b|root\nx|a\\b\\c|$HOME|%h|--|a'b|a\"b|@host|../x|host:22|[::1]";
const hostile = fc.constantFrom(...shells.split("|"), "a|b", "");

describe("the allow-lists of the roster (S-2)", () => {
  it("accept usual addresses and user names", () => {
    const names = ["n1", "n1.example.org", "xn--bcher-kva.example"];
    for (const address of ["192.0.2.1", "::1", "fe80::1%eth0", "2001:db8::1", ...names])
      expect(Address.safeParse(address).success, address).to.equal(true);
    for (const user of ["root", "ops", "_apt", "first.last", "svc-kcore", "ada@corp.example", "CORP\\ada", "007"])
      expect(LoginName.safeParse(user).success, user).to.equal(true);
  });

  it("refuse each hostile text", () => {
    for (const schema of [Address, LoginName, EntryName, StateDir])
      fc.assert(fc.property(hostile, (text) => !schema.safeParse(text).success));
  });

  it("accept only characters that neither sh nor ssh interprets, in 10,000 texts (S-2)", () => {
    const parts = fc.array(
      fc.oneof(hostile, anyText({ maxLength: 6 }), fc.constantFrom("a", "1", ".", "-", "_", ":", "%")),
      { maxLength: 6 },
    );
    fc.assert(
      fc.property(parts, (list) => {
        const text = list.join("");
        if (Address.safeParse(text).success) expect(text).to.match(/^[A-Za-z0-9:][A-Za-z0-9.:_%-]*$/);
        if (LoginName.safeParse(text).success)
          expect(text).to.match(/^([A-Za-z0-9._-]+\\)?[A-Za-z0-9_.][A-Za-z0-9._@+-]*\$?$/);
        if (EntryName.safeParse(text).success) expect(text).to.match(/^[A-Za-z0-9][A-Za-z0-9._-]*$/);
      }),
      { numRuns: 10_000 },
    );
  });

  it("accept a host key only if its bytes have the type that its text names", () => {
    const key = "AAAAC3NzaC1lZDI1NTE5AAAAIJ3hr7uXyJ3i8rX5l3mT0n5Jk2bGm1mX9v0h5mJ8m3xk";
    expect(HostKeyText.parse(`ssh-ed25519 ${key} root@n1`)).to.equal(`ssh-ed25519 ${key}`);
    expect(HostKeyText.safeParse(`ssh-rsa ${key}`).success).to.equal(false);
    expect([HostKeyText.safeParse(`ssh-dss ${key}`).success, HostKeyText.safeParse(key).success]).to.deep.equal([
      false,
      false,
    ]);
  });
});
