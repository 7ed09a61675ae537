import { expect } from "chai";
import { createLog } from "#api/log.ts";
import { generateKey } from "#pki/keys.ts";

describe("a daemon's log", () => {
  const lineOf = (message: string, fields: object): string => {
    let text = "";
    createLog({ write: (line) => (text += line), clock: () => 0, base: { unit: "u" } }).warn(message, { ...fields });
    return text;
  };

  it("is a line of JSON: time, level, message, then the fields", () => {
    const line = lineOf("a node registered", { node: "n1" });
    expect(line.endsWith("}\n")).to.equal(true);
    expect(JSON.parse(line)).to.deep.equal({
      time: "1970-01-01T00:00:00.000Z",
      level: "warn",
      message: "a node registered",
      unit: "u",
      node: "n1",
    });
  });

  it("S-7: contains no private key", () => {
    const key = generateKey().export({ type: "pkcs8", format: "pem" }) as string;
    const body = key.split("\n")[1] ?? "";
    const line = lineOf(`it failed: ${key}`, { reason: key, deep: { error: key } });
    expect(line).not.to.contain(body);
    expect(JSON.parse(line)).to.have.property("level", "warn");
  });

  it("S-7: masks fields with names of secrets at any depth", () => {
    const line = lineOf("it failed", { password: "p1", deep: [{ passphrase: "p2", header: { authorization: "p3" } }] });
    expect(line).not.to.match(/p[123]"/);
    expect(JSON.parse(line)).to.deep.include({ password: "***" });
  });
});
