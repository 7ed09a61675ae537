import { expect } from "chai";
import { SharedResources } from "#web/shared-resources.ts";

class Thing {
  isClosed = false;
  close(): void {
    this.isClosed = true;
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

describe("a resource of several pages", () => {
  it("is opened once, and closed some time after its last use", async () => {
    const made: Thing[] = [];
    const shared = new SharedResources(() => {
      const thing = new Thing();
      made.push(thing);
      return Promise.resolve(thing);
    }, 1);
    const [a, b] = await Promise.all([shared.use("x"), shared.use("x")]);
    expect(a.value).to.equal(b.value);
    a.done();
    a.done();
    await turn();
    expect(a.value.isClosed).to.equal(false);
    b.done();
    const again = await shared.use("x");
    expect(again.value).to.equal(a.value);
    again.done();
    await turn();
    expect(a.value.isClosed).to.equal(true);
    await shared.use("x");
    expect(made).to.have.length(2);
    shared.closeAll();
    await turn();
    expect(made.every(({ isClosed }) => isClosed)).to.equal(true);
  });

  it("is opened again after a failure", async () => {
    let tries = 0;
    const shared = new SharedResources(
      () => (++tries === 1 ? Promise.reject(new Error("no")) : Promise.resolve(new Thing())),
      0,
    );
    expect(await shared.use("x").catch((one: unknown) => one)).to.be.an("error");
    expect((await shared.use("x")).value).to.be.instanceOf(Thing);
    shared.closeAll();
  });
});
