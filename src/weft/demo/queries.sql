-- A hundred queries that traders, risk desks and those who watch over them keep on one stream of trades:
--
--     trades (ts TIMESTAMP, symbol STRING, venue STRING, desk STRING, side STRING, price DOUBLE, volume INT)
--
-- Each is plain Spark SQL. Thresholds are made for 20,000 trades a second.


-- 1. Market data, by symbol -----------------------------------------------------------------------------------------

-- Volume-weighted average price, from the quick one on a ticker to the one that orders are judged by
CREATE VIEW vwap_5s AS
SELECT symbol, window, sum(price * volume) / sum(volume) AS vwap
FROM trades GROUP BY symbol, window(ts, '5 seconds', '1 second');

CREATE VIEW vwap_10s AS
SELECT symbol, window, sum(price * volume) / sum(volume) AS vwap
FROM trades GROUP BY symbol, window(ts, '10 seconds', '1 second');

CREATE VIEW vwap_30s AS
SELECT symbol, window, sum(price * volume) / sum(volume) AS vwap, sum(volume) AS shares
FROM trades GROUP BY symbol, window(ts, '30 seconds', '2 seconds');

CREATE VIEW vwap_1m AS
SELECT symbol, window, sum(price * volume) / sum(volume) AS vwap, sum(volume) AS shares
FROM trades GROUP BY symbol, window(ts, '1 minute', '5 seconds');

CREATE VIEW vwap_2m AS
SELECT symbol, window, sum(price * volume) / sum(volume) AS vwap, sum(volume) AS shares
FROM trades GROUP BY symbol, window(ts, '2 minutes', '10 seconds');

-- Candles
CREATE VIEW candle_5s AS
SELECT symbol, window, min_by(price, ts) AS open, max(price) AS high, min(price) AS low, max_by(price, ts) AS close,
       sum(volume) AS shares
FROM trades GROUP BY symbol, window(ts, '5 seconds');

CREATE VIEW candle_10s AS
SELECT symbol, window, min_by(price, ts) AS open, max(price) AS high, min(price) AS low, max_by(price, ts) AS close,
       sum(volume) AS shares
FROM trades GROUP BY symbol, window(ts, '10 seconds');

CREATE VIEW candle_30s AS
SELECT symbol, window, min_by(price, ts) AS open, max(price) AS high, min(price) AS low, max_by(price, ts) AS close,
       sum(volume) AS shares
FROM trades GROUP BY symbol, window(ts, '30 seconds');

CREATE VIEW candle_1m_rolling AS
SELECT symbol, window, min_by(price, ts) AS open, max(price) AS high, min(price) AS low, max_by(price, ts) AS close,
       sum(volume) AS shares
FROM trades GROUP BY symbol, window(ts, '1 minute', '10 seconds');

-- High, low and what lies between
CREATE VIEW high_low_10s AS
SELECT symbol, window, max(price) AS high, min(price) AS low, max(price) - min(price) AS spread
FROM trades GROUP BY symbol, window(ts, '10 seconds', '2 seconds');

CREATE VIEW high_low_30s AS
SELECT symbol, window, max(price) AS high, min(price) AS low, max(price) - min(price) AS spread
FROM trades GROUP BY symbol, window(ts, '30 seconds', '5 seconds');

CREATE VIEW high_low_1m AS
SELECT symbol, window, max(price) AS high, min(price) AS low, max(price) - min(price) AS spread
FROM trades GROUP BY symbol, window(ts, '1 minute', '5 seconds');

CREATE VIEW high_low_2m AS
SELECT symbol, window, max(price) AS high, min(price) AS low, max(price) - min(price) AS spread
FROM trades GROUP BY symbol, window(ts, '2 minutes', '30 seconds');

-- How much is traded
CREATE VIEW trade_count_5s AS
SELECT symbol, window, count(*) AS trades FROM trades GROUP BY symbol, window(ts, '5 seconds', '1 second');

CREATE VIEW trade_count_30s AS
SELECT symbol, window, count(*) AS trades FROM trades GROUP BY symbol, window(ts, '30 seconds', '5 seconds');

CREATE VIEW trade_count_1m AS
SELECT symbol, window, count(*) AS trades FROM trades GROUP BY symbol, window(ts, '1 minute', '10 seconds');

CREATE VIEW volume_5s AS
SELECT symbol, window, sum(volume) AS shares FROM trades GROUP BY symbol, window(ts, '5 seconds', '1 second');

CREATE VIEW volume_10s AS
SELECT symbol, window, sum(volume) AS shares FROM trades GROUP BY symbol, window(ts, '10 seconds', '2 seconds');

CREATE VIEW volume_30s AS
SELECT symbol, window, sum(volume) AS shares FROM trades GROUP BY symbol, window(ts, '30 seconds', '5 seconds');

CREATE VIEW volume_1m AS
SELECT symbol, window, sum(volume) AS shares FROM trades GROUP BY symbol, window(ts, '1 minute', '15 seconds');

CREATE VIEW turnover_10s AS
SELECT symbol, window, sum(price * volume) AS turnover FROM trades GROUP BY symbol, window(ts, '10 seconds', '2 seconds');

CREATE VIEW turnover_1m AS
SELECT symbol, window, sum(price * volume) AS turnover FROM trades GROUP BY symbol, window(ts, '1 minute', '10 seconds');

CREATE VIEW trade_size_30s AS
SELECT symbol, window, avg(volume) AS mean_size, max(volume) AS largest
FROM trades GROUP BY symbol, window(ts, '30 seconds', '5 seconds');

CREATE VIEW last_trade_5s AS
SELECT symbol, window, max_by(price, ts) AS price, max(ts) AS traded_at
FROM trades GROUP BY symbol, window(ts, '5 seconds', '1 second');


-- 2. Liquidity, by venue and by symbol and venue --------------------------------------------------------------------

CREATE VIEW venue_volume_5s AS
SELECT venue, window, sum(volume) AS shares FROM trades GROUP BY venue, window(ts, '5 seconds', '1 second');

CREATE VIEW venue_volume_10s AS
SELECT venue, window, sum(volume) AS shares FROM trades GROUP BY venue, window(ts, '10 seconds', '1 second');

CREATE VIEW venue_volume_30s AS
SELECT venue, window, sum(volume) AS shares FROM trades GROUP BY venue, window(ts, '30 seconds', '2 seconds');

CREATE VIEW venue_volume_1m AS
SELECT venue, window, sum(volume) AS shares FROM trades GROUP BY venue, window(ts, '1 minute', '5 seconds');

CREATE VIEW venue_trades_10s AS
SELECT venue, window, count(*) AS trades FROM trades GROUP BY venue, window(ts, '10 seconds', '1 second');

CREATE VIEW venue_trades_1m AS
SELECT venue, window, count(*) AS trades FROM trades GROUP BY venue, window(ts, '1 minute', '10 seconds');

CREATE VIEW venue_turnover_30s AS
SELECT venue, window, sum(price * volume) AS turnover FROM trades GROUP BY venue, window(ts, '30 seconds', '5 seconds');

CREATE VIEW venue_trade_size_30s AS
SELECT venue, window, avg(volume) AS mean_size, max(volume) AS largest
FROM trades GROUP BY venue, window(ts, '30 seconds', '5 seconds');

CREATE VIEW venue_block_share_1m AS
SELECT venue, window, count_if(volume >= 5000) AS blocks, count_if(volume >= 5000) / count(*) AS block_share
FROM trades GROUP BY venue, window(ts, '1 minute', '5 seconds');

CREATE VIEW venue_buy_share_30s AS
SELECT venue, window, count_if(side = 'buy') / count(*) AS buy_share
FROM trades GROUP BY venue, window(ts, '30 seconds', '2 seconds');

-- Where a symbol trades best
CREATE VIEW symbol_venue_vwap_10s AS
SELECT symbol, venue, window, sum(price * volume) / sum(volume) AS vwap
FROM trades GROUP BY symbol, venue, window(ts, '10 seconds', '2 seconds');

CREATE VIEW symbol_venue_vwap_30s AS
SELECT symbol, venue, window, sum(price * volume) / sum(volume) AS vwap
FROM trades GROUP BY symbol, venue, window(ts, '30 seconds', '5 seconds');

CREATE VIEW symbol_venue_vwap_1m AS
SELECT symbol, venue, window, sum(price * volume) / sum(volume) AS vwap
FROM trades GROUP BY symbol, venue, window(ts, '1 minute', '10 seconds');

CREATE VIEW symbol_venue_volume_10s AS
SELECT symbol, venue, window, sum(volume) AS shares, count(*) AS trades
FROM trades GROUP BY symbol, venue, window(ts, '10 seconds', '2 seconds');

CREATE VIEW symbol_venue_volume_1m AS
SELECT symbol, venue, window, sum(volume) AS shares, count(*) AS trades
FROM trades GROUP BY symbol, venue, window(ts, '1 minute', '10 seconds');

CREATE VIEW symbol_venue_spread_30s AS
SELECT symbol, venue, window, max(price) - min(price) AS spread
FROM trades GROUP BY symbol, venue, window(ts, '30 seconds', '5 seconds');

CREATE VIEW symbol_venue_last_10s AS
SELECT symbol, venue, window, max_by(price, ts) AS price
FROM trades GROUP BY symbol, venue, window(ts, '10 seconds', '2 seconds');

CREATE VIEW symbol_venue_trade_size_1m AS
SELECT symbol, venue, window, avg(volume) AS mean_size
FROM trades GROUP BY symbol, venue, window(ts, '1 minute', '15 seconds');


-- 3. Volatility, by symbol ------------------------------------------------------------------------------------------

CREATE VIEW volatility_10s AS
SELECT symbol, window, stddev(price) AS deviation FROM trades GROUP BY symbol, window(ts, '10 seconds', '1 second');

CREATE VIEW volatility_30s AS
SELECT symbol, window, stddev(price) AS deviation FROM trades GROUP BY symbol, window(ts, '30 seconds', '2 seconds');

CREATE VIEW volatility_1m AS
SELECT symbol, window, stddev(price) AS deviation FROM trades GROUP BY symbol, window(ts, '1 minute', '5 seconds');

CREATE VIEW volatility_2m AS
SELECT symbol, window, stddev(price) AS deviation FROM trades GROUP BY symbol, window(ts, '2 minutes', '10 seconds');

-- In basis points, so that symbols compare
CREATE VIEW relative_volatility_30s AS
SELECT symbol, window, 10000 * stddev(price) / avg(price) AS basis_points
FROM trades GROUP BY symbol, window(ts, '30 seconds', '2 seconds');

CREATE VIEW relative_volatility_1m AS
SELECT symbol, window, 10000 * stddev(price) / avg(price) AS basis_points
FROM trades GROUP BY symbol, window(ts, '1 minute', '5 seconds');

CREATE VIEW bands_30s AS
SELECT symbol, window, avg(price) - 2 * stddev(price) AS lower_band, avg(price) AS middle,
       avg(price) + 2 * stddev(price) AS upper_band
FROM trades GROUP BY symbol, window(ts, '30 seconds', '5 seconds');

CREATE VIEW bands_1m AS
SELECT symbol, window, avg(price) - 2 * stddev(price) AS lower_band, avg(price) AS middle,
       avg(price) + 2 * stddev(price) AS upper_band
FROM trades GROUP BY symbol, window(ts, '1 minute', '5 seconds');

CREATE VIEW volume_deviation_30s AS
SELECT symbol, window, stddev(volume) AS deviation FROM trades GROUP BY symbol, window(ts, '30 seconds', '5 seconds');

CREATE VIEW price_volume_correlation_1m AS
SELECT symbol, window, corr(price, volume) AS correlation
FROM trades GROUP BY symbol, window(ts, '1 minute', '5 seconds');

CREATE VIEW price_volume_correlation_2m AS
SELECT symbol, window, corr(price, volume) AS correlation
FROM trades GROUP BY symbol, window(ts, '2 minutes', '15 seconds');


-- 4. Momentum, by symbol --------------------------------------------------------------------------------------------

CREATE VIEW momentum_5s AS
SELECT symbol, window, max_by(price, ts) - min_by(price, ts) AS moved
FROM trades GROUP BY symbol, window(ts, '5 seconds', '1 second');

CREATE VIEW momentum_10s AS
SELECT symbol, window, max_by(price, ts) - min_by(price, ts) AS moved
FROM trades GROUP BY symbol, window(ts, '10 seconds', '1 second');

CREATE VIEW momentum_30s AS
SELECT symbol, window, max_by(price, ts) - min_by(price, ts) AS moved
FROM trades GROUP BY symbol, window(ts, '30 seconds', '5 seconds');

CREATE VIEW momentum_1m AS
SELECT symbol, window, max_by(price, ts) - min_by(price, ts) AS moved
FROM trades GROUP BY symbol, window(ts, '1 minute', '5 seconds');

CREATE VIEW momentum_2m AS
SELECT symbol, window, max_by(price, ts) - min_by(price, ts) AS moved
FROM trades GROUP BY symbol, window(ts, '2 minutes', '10 seconds');

CREATE VIEW return_10s AS
SELECT symbol, window, 10000 * (max_by(price, ts) / min_by(price, ts) - 1) AS basis_points
FROM trades GROUP BY symbol, window(ts, '10 seconds', '2 seconds');

CREATE VIEW return_30s AS
SELECT symbol, window, 10000 * (max_by(price, ts) / min_by(price, ts) - 1) AS basis_points
FROM trades GROUP BY symbol, window(ts, '30 seconds', '5 seconds');

CREATE VIEW return_1m AS
SELECT symbol, window, 10000 * (max_by(price, ts) / min_by(price, ts) - 1) AS basis_points
FROM trades GROUP BY symbol, window(ts, '1 minute', '10 seconds');

-- 0 at the low of the window, 1 at its high; NULL where they are one
CREATE VIEW place_in_range_30s AS
SELECT symbol, window, (max_by(price, ts) - min(price)) / nullif(max(price) - min(price), 0) AS place
FROM trades GROUP BY symbol, window(ts, '30 seconds', '2 seconds');

CREATE VIEW place_in_range_1m AS
SELECT symbol, window, (max_by(price, ts) - min(price)) / nullif(max(price) - min(price), 0) AS place
FROM trades GROUP BY symbol, window(ts, '1 minute', '5 seconds');

CREATE VIEW above_vwap_30s AS
SELECT symbol, window, max_by(price, ts) - sum(price * volume) / sum(volume) AS above
FROM trades GROUP BY symbol, window(ts, '30 seconds', '2 seconds');

CREATE VIEW above_vwap_1m AS
SELECT symbol, window, max_by(price, ts) - sum(price * volume) / sum(volume) AS above
FROM trades GROUP BY symbol, window(ts, '1 minute', '5 seconds');


-- 5. Risk, by desk and by symbol ------------------------------------------------------------------------------------

-- What a desk has bought less what it has sold
CREATE VIEW desk_exposure_5s AS
SELECT desk, window, sum(price * volume * if(side = 'buy', 1, -1)) AS exposure
FROM trades GROUP BY desk, window(ts, '5 seconds', '1 second');

CREATE VIEW desk_exposure_10s AS
SELECT desk, window, sum(price * volume * if(side = 'buy', 1, -1)) AS exposure
FROM trades GROUP BY desk, window(ts, '10 seconds', '1 second');

CREATE VIEW desk_exposure_30s AS
SELECT desk, window, sum(price * volume * if(side = 'buy', 1, -1)) AS exposure
FROM trades GROUP BY desk, window(ts, '30 seconds', '2 seconds');

CREATE VIEW desk_exposure_1m AS
SELECT desk, window, sum(price * volume * if(side = 'buy', 1, -1)) AS exposure
FROM trades GROUP BY desk, window(ts, '1 minute', '5 seconds');

CREATE VIEW desk_exposure_2m AS
SELECT desk, window, sum(price * volume * if(side = 'buy', 1, -1)) AS exposure
FROM trades GROUP BY desk, window(ts, '2 minutes', '10 seconds');

CREATE VIEW desk_gross_10s AS
SELECT desk, window, sum(price * volume) AS gross FROM trades GROUP BY desk, window(ts, '10 seconds', '2 seconds');

CREATE VIEW desk_gross_30s AS
SELECT desk, window, sum(price * volume) AS gross FROM trades GROUP BY desk, window(ts, '30 seconds', '5 seconds');

CREATE VIEW desk_gross_1m AS
SELECT desk, window, sum(price * volume) AS gross FROM trades GROUP BY desk, window(ts, '1 minute', '10 seconds');

CREATE VIEW desk_trades_10s AS
SELECT desk, window, count(*) AS trades FROM trades GROUP BY desk, window(ts, '10 seconds', '1 second');

CREATE VIEW desk_trades_1m AS
SELECT desk, window, count(*) AS trades FROM trades GROUP BY desk, window(ts, '1 minute', '5 seconds');

CREATE VIEW desk_largest_trade_30s AS
SELECT desk, window, max(price * volume) AS largest FROM trades GROUP BY desk, window(ts, '30 seconds', '2 seconds');

CREATE VIEW desk_buy_share_30s AS
SELECT desk, window, count_if(side = 'buy') / count(*) AS buy_share
FROM trades GROUP BY desk, window(ts, '30 seconds', '5 seconds');

CREATE VIEW desk_buy_share_1m AS
SELECT desk, window, count_if(side = 'buy') / count(*) AS buy_share
FROM trades GROUP BY desk, window(ts, '1 minute', '10 seconds');

CREATE VIEW desk_blocks_1m AS
SELECT desk, window, count_if(volume >= 5000) AS blocks FROM trades GROUP BY desk, window(ts, '1 minute', '5 seconds');

CREATE VIEW desk_over_limit_30s AS
SELECT desk, window, sum(price * volume * if(side = 'buy', 1, -1)) AS exposure
FROM trades GROUP BY desk, window(ts, '30 seconds', '1 second')
HAVING abs(sum(price * volume * if(side = 'buy', 1, -1))) > 200000000;

-- Bought less sold, as a share of what was traded: -1 to 1
CREATE VIEW imbalance_5s AS
SELECT symbol, window, 2 * sum(volume) FILTER (WHERE side = 'buy') / sum(volume) - 1 AS imbalance
FROM trades GROUP BY symbol, window(ts, '5 seconds', '1 second');

CREATE VIEW imbalance_10s AS
SELECT symbol, window, 2 * sum(volume) FILTER (WHERE side = 'buy') / sum(volume) - 1 AS imbalance
FROM trades GROUP BY symbol, window(ts, '10 seconds', '1 second');

CREATE VIEW imbalance_30s AS
SELECT symbol, window, 2 * sum(volume) FILTER (WHERE side = 'buy') / sum(volume) - 1 AS imbalance
FROM trades GROUP BY symbol, window(ts, '30 seconds', '5 seconds');

CREATE VIEW imbalance_1m AS
SELECT symbol, window, 2 * sum(volume) FILTER (WHERE side = 'buy') / sum(volume) - 1 AS imbalance
FROM trades GROUP BY symbol, window(ts, '1 minute', '5 seconds');

CREATE VIEW imbalance_2m AS
SELECT symbol, window, 2 * sum(volume) FILTER (WHERE side = 'buy') / sum(volume) - 1 AS imbalance
FROM trades GROUP BY symbol, window(ts, '2 minutes', '10 seconds');


-- 6. Surveillance ---------------------------------------------------------------------------------------------------

-- Many trades, nearly all on one side: somebody works a large order
CREATE VIEW one_sided_burst_5s AS
SELECT symbol, window, count(*) AS trades, count_if(side = 'buy') / count(*) AS buy_share
FROM trades GROUP BY symbol, window(ts, '5 seconds', '1 second')
HAVING count(*) > 2000 AND abs(count_if(side = 'buy') / count(*) - 0.5) > 0.2;

CREATE VIEW one_sided_burst_30s AS
SELECT symbol, window, count(*) AS trades, count_if(side = 'buy') / count(*) AS buy_share
FROM trades GROUP BY symbol, window(ts, '30 seconds', '5 seconds')
HAVING count(*) > 5000 AND abs(count_if(side = 'buy') / count(*) - 0.5) > 0.15;

CREATE VIEW price_spike_5s AS
SELECT symbol, window, min(price) AS low, max(price) AS high
FROM trades GROUP BY symbol, window(ts, '5 seconds', '1 second')
HAVING max(price) - min(price) > 0.02 * avg(price);

CREATE VIEW desk_burst_5s AS
SELECT desk, window, count(*) AS trades
FROM trades GROUP BY desk, window(ts, '5 seconds', '1 second')
HAVING count(*) > 6000;

-- As much bought as sold, to the hundredth: trades with oneself look like this
CREATE VIEW desk_evenly_matched_10s AS
SELECT desk, window, count(*) AS trades
FROM trades GROUP BY desk, window(ts, '10 seconds', '2 seconds')
HAVING count(*) > 1000 AND abs(count_if(side = 'buy') / count(*) - 0.5) < 0.002;

CREATE VIEW symbol_venue_burst_5s AS
SELECT symbol, venue, window, count(*) AS trades
FROM trades GROUP BY symbol, venue, window(ts, '5 seconds', '1 second')
HAVING count(*) > 3000;

-- Blocks alone
CREATE VIEW blocks_30s AS
SELECT symbol, window, count(*) AS blocks, max(volume) AS largest
FROM trades WHERE volume >= 5000 GROUP BY symbol, window(ts, '30 seconds', '2 seconds');

CREATE VIEW block_vwap_1m AS
SELECT symbol, window, sum(price * volume) / sum(volume) AS vwap
FROM trades WHERE volume >= 5000 GROUP BY symbol, window(ts, '1 minute', '5 seconds');

-- One venue alone
CREATE VIEW iex_volume_30s AS
SELECT symbol, window, sum(volume) AS shares
FROM trades WHERE venue = 'IEX' GROUP BY symbol, window(ts, '30 seconds', '5 seconds');

CREATE VIEW iex_vwap_1m AS
SELECT symbol, window, sum(price * volume) / sum(volume) AS vwap
FROM trades WHERE venue = 'IEX' GROUP BY symbol, window(ts, '1 minute', '10 seconds');


-- 7. Operations, over everything ------------------------------------------------------------------------------------

CREATE VIEW trades_a_second AS
SELECT window, count(*) / 5 AS trades FROM trades GROUP BY window(ts, '5 seconds', '1 second');

CREATE VIEW market_turnover_10s AS
SELECT window, sum(price * volume) AS turnover FROM trades GROUP BY window(ts, '10 seconds', '1 second');

CREATE VIEW market_volume_1m AS
SELECT window, sum(volume) AS shares, avg(volume) AS mean_size FROM trades GROUP BY window(ts, '1 minute', '5 seconds');

CREATE VIEW market_buy_share_30s AS
SELECT window, count_if(side = 'buy') / count(*) AS buy_share FROM trades GROUP BY window(ts, '30 seconds', '2 seconds');

CREATE VIEW newest_trade_5s AS
SELECT window, min(ts) AS oldest, max(ts) AS newest FROM trades GROUP BY window(ts, '5 seconds', '1 second');
