import { type Metadata, ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js';

/** One call, as far as its answer is out. */
interface Delivery {
  isGone: boolean;
  isSent: boolean;
  undelivered: (() => void) | null;
}

/**
 * Answers that must not get lost without our knowing. A client that cancels has not seen the status, which is the last of an answer: so before that goes
 * out, what has come from the client by then is read once more. Only what crosses with it on the wire is not noticed.
 */
export class Deliveries {
  /** By the metadata of the call, which the library hands on as it is. */
  readonly #open = new WeakMap<Metadata, Delivery>();

  readonly interceptor: ServerInterceptor = (_method, call) => {
    const delivery: Delivery = { isGone: false, isSent: false, undelivered: null };
    return new ServerInterceptingCall(call, {
      start: (next) => {
        next({
          onReceiveMetadata: (metadata, pass) => {
            this.#open.set(metadata, delivery);
            pass(metadata);
          },
          onReceiveMessage: (message, pass) => pass(message),
          onReceiveHalfClose: (pass) => pass(),
          // Also told of a call that was answered.
          onCancel: () => {
            delivery.isGone = true;
            tell(delivery);
          },
        });
      },
      sendMetadata: (metadata, next) => next(metadata),
      sendMessage: (message, next) => next(message),
      sendStatus: (status, next) => {
        const send = (): void => {
          if (delivery.isGone) return;
          delivery.isSent = true;
          next(status);
        };
        if (delivery.undelivered === null) send();
        else setImmediate(send);
      },
    });
  };

  /** Calls `undelivered`, once, when the client of the call with `metadata` has gone before the whole answer was out; at once, when it has by now. */
  expect(metadata: Metadata, undelivered: () => void): void {
    const delivery = this.#open.get(metadata);
    if (delivery === undefined) return;
    delivery.undelivered = undelivered;
    if (delivery.isGone) tell(delivery);
  }
}

function tell(delivery: Delivery): void {
  const { isSent, undelivered } = delivery;
  delivery.undelivered = null;
  if (!isSent) undelivered?.();
}
