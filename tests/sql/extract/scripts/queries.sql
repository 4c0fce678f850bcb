-- From a notebook: some are for weft, some are not
CREATE OR REPLACE TEMPORARY VIEW volume AS
SELECT symbol, window.start AS since, sum(volume) AS shares
FROM trades WHERE price > 0
GROUP BY symbol, window(ts, '5 minutes', '30 seconds') HAVING sum(volume) > 10;

INSERT INTO answers SELECT * FROM volume;

SELECT count(*) AS n FROM trades GROUP BY window(ts, '1 minute');

SELECT symbol, sum(DISTINCT side) AS places
FROM trades
GROUP BY symbol, window(ts, '1 minute');
