-- What jobs brought can be erased before its time: with what they were about.
grant delete on duly.result_snapshots to duly_engine;
