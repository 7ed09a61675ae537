import { expect } from "chai";
import { KcoreError } from "#errors/problem.ts";
import { threeTries } from "#errors/three-tries.ts";
import { RunSecrets } from "#engine/orchestrate/run-secrets.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { codeOf } from "#support/rejection.ts";

const wrong = () => new KcoreError({ code: "PKI_PASSPHRASE_WRONG", message: "wrong" });

describe("a question for a secret", () => {
  it("is asked at most three times while the answer is wrong, and not again after another failure", async () => {
    const asked: boolean[] = [];
    const attempt = async (tries: number, end: () => string) =>
      threeTries(
        (again) => {
          asked.push(again);
          return Promise.resolve().then(() => {
            if (asked.length < tries) throw wrong();
            return end();
          });
        },
        ["PKI_PASSPHRASE_WRONG"],
      );
    expect(await attempt(3, () => "open")).to.equal("open");
    expect(asked.splice(0)).to.deep.equal([false, true, true]);
    expect(await codeOf(attempt(4, () => "open"))).to.equal("PKI_PASSPHRASE_WRONG");
    expect(asked.splice(0)).to.have.length(3);
    const broken = () => {
      throw new KcoreError({ code: "FILE_UNREADABLE", message: "gone" });
    };
    expect(await codeOf(attempt(1, broken))).to.equal("FILE_UNREADABLE");
    expect(asked).to.have.length(1);
  });

  it("is repeated for a wrong passphrase of the CA, and not asked again once that was right", async () => {
    const typed = ["tpyo", "right"];
    const texts: string[] = [];
    const secrets = new RunSecrets({
      ask: ({ text }) => {
        texts.push(text);
        return Promise.resolve(typed.shift() ?? "");
      },
      readSecret: () => Promise.reject(new Error("nothing refers to a secret")),
      opensCa: (passphrase) => Promise.resolve(passphrase === "right"),
    });
    expect(await secrets.clusterPassphrase()).to.equal("right");
    expect(await secrets.clusterPassphrase()).to.equal("right");
    expect(texts).to.have.length(2);
    expect(texts[1]).to.match(/^That was wrong\. Passphrase of the cluster CA/);
  });

  it("is repeated for a wrong sudo password, but not for one that the roster names", async () => {
    let count = 0;
    const secrets = new RunSecrets({
      ask: () => Promise.resolve(`typed ${++count}`),
      readSecret: () => Promise.resolve("from the roster"),
    });
    const node = { name: "n1", user: "op", sudo: {} } as NodeEntry;
    expect(await secrets.sudoPassword(node)).to.equal("typed 1");
    expect(await secrets.sudoPassword(node), "known").to.equal("typed 1");
    expect(await secrets.sudoPassword(node, true)).to.equal("typed 2");
    expect(await secrets.sudoPassword(node), "the new one").to.equal("typed 2");
    const named = { name: "n2", user: "op", sudo: { password: { env: "X" } } } as unknown as NodeEntry;
    expect(await secrets.sudoPassword(named)).to.equal("from the roster");
    expect(await secrets.sudoPassword(named, true)).to.equal(undefined);
  });
});
