import { expect } from "chai";
import { RttEstimator } from "#controller/replica/rtt.ts";
import { healthAt, PhiDetector } from "#controller/replica/phi.ts";

describe("timeouts by the measured round trip", () => {
  it("follow a step of the round trip from 2 to 200 and back to 2 ms within five samples", () => {
    const estimator = new RttEstimator(1000);
    const late: number[] = [];
    const phase = (rtt: number, count: number): void => {
      for (let index = 0; index < count; index++) {
        if (index >= 5 && rtt > estimator.rto) late.push(rtt);
        estimator.sample(rtt);
      }
    };
    phase(2, 20);
    phase(200, 20);
    phase(2, 20);
    expect(late).to.deep.equal([]);
  });

  it("stay within 200 ms and 30 s", () => {
    const estimator = new RttEstimator(1000);
    expect(estimator.rto).to.equal(1000);
    for (let index = 0; index < 50; index++) estimator.sample(0.1);
    expect(estimator.rto).to.equal(200);
    for (let index = 0; index < 20; index++) estimator.timedOut();
    expect(estimator.rto).to.be.at.most(30_000);
    expect(estimator.connectTimeout).to.be.at.most(10_000);
    estimator.sample(1);
    expect(estimator.rto).to.equal(200);
  });
});

describe("the φ detector", () => {
  it("reports a peer up, then down as its silence grows", () => {
    const detector = new PhiDetector();
    for (let now = 0; now <= 20_000; now += 1000) detector.heard(now);
    expect(healthAt(detector.phi(20_500))).to.equal("up");
    expect(detector.phi(21_200)).to.be.lessThan(detector.phi(21_400));
    expect(healthAt(detector.phi(30_000))).to.equal("down");
  });

  it("reports a peer up in a usual pause after a burst of messages", () => {
    const detector = new PhiDetector();
    for (let now = 0; now <= 100; now += 2) detector.heard(now);
    expect(healthAt(detector.phi(1_100))).to.equal("up");
    expect(healthAt(detector.phi(5_000))).to.equal("down");
  });
});
